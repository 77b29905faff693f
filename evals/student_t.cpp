#include "evals/student_t.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace quantmap {
namespace {

using StudentT = boost::math::students_t_distribution<double>;

}  // namespace

double student_t_quantile(double p, double degrees) { return boost::math::quantile(StudentT(degrees), p); }

double student_t_two_sided(double t, double degrees) {
  if (std::isinf(t)) return 0;
  return 2 * boost::math::cdf(boost::math::complement(StudentT(degrees), std::abs(t)));
}

Interval t_interval(const Number& value, const Number& stderr_of_value, double degrees, double confidence) {
  if (!value || !stderr_of_value || degrees < 1) return {};
  const double half = student_t_quantile((1 + confidence) / 2, degrees) * *stderr_of_value;
  return {*value - half, *value + half};
}

}  // namespace quantmap
