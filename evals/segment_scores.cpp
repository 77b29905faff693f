#include "evals/segment_scores.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/error.hpp"

namespace quantmap {
namespace {

// As WindowScores::add does, from what it kept.
void add_kept(const WindowScores& from, std::size_t token, WindowScores& to) {
  const double nll = from.nll[token], kl = from.kl[token], tv = from.tv[token], delta_p = from.delta_p[token];
  to.nll.push_back(from.nll[token]);
  to.kl.push_back(from.kl[token]);
  to.tv.push_back(from.tv[token]);
  to.delta_p.push_back(from.delta_p[token]);
  to.top1.push_back(from.top1[token]);
  to.nll_sum += nll;
  to.nll2_sum += nll * nll;
  if (std::isinf(kl)) {
    ++to.kl_infinite;
  } else {
    to.kl_sum += kl;
    to.kl2_sum += kl * kl;
  }
  if (kl > to.kl_max || std::isnan(kl)) to.kl_max = kl;
  to.tv_sum += tv;
  to.delta_p_sum += delta_p;
  to.delta_p2_sum += delta_p * delta_p;
  to.top1_sum += from.top1[token] == 1 ? 1 : 0;
  to.margin_flips += from.top1[token] == 2 ? 1 : 0;
}

}  // namespace

std::vector<WindowScores> scores_of_segment(std::span<const WindowScores> windows,
                                            const std::vector<std::vector<std::uint32_t>>& of_token,
                                            std::uint32_t segment) {
  std::vector<WindowScores> found;
  for (const WindowScores& window : windows) {
    const auto& labels = of_token.at(static_cast<std::size_t>(window.window));
    if (labels.size() != window.nll.size())
      fail("segments", "",
           fmt::format("window {} has {} labels for {} scores", window.window, labels.size(),
                       window.nll.size()));
    WindowScores part;
    part.scheme = window.scheme;
    part.window = window.window;
    for (std::size_t token = 0; token < labels.size(); ++token)
      if (labels[token] == segment) add_kept(window, token, part);
    part.weight = static_cast<double>(part.tokens());
    if (part.tokens() > 0) found.push_back(std::move(part));
  }
  return found;
}

}  // namespace quantmap
