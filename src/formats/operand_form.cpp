#include <stdexcept>

#include "formats/quantize.hpp"

namespace quantmap {
namespace {

std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

}  // namespace

OperandForm operand_form(const QuantSpec& spec) {
  OperandForm form;
  switch (spec.format->kind) {
    case FormatKind::cast:
      form.exact_in_bf16 = spec.format->id == "bf16";
      return form;
    case FormatKind::mx:
      form.exact_in_bf16 = true;
      return form;
    case FormatKind::nvfp4:
      form.outer = spec.no_global ? OuterScale::none : OuterScale::tensor;
      form.exact_in_bf16 = true;
      return form;
    case FormatKind::lookup:
    case FormatKind::ggml:
      return form;
    case FormatKind::integer:
    case FormatKind::minifloat:
      break;
  }
  switch (spec.granularity) {
    case Granularity::tensor:
      form.outer = OuterScale::tensor;
      break;
    case Granularity::row:
      form.outer = OuterScale::row;
      break;
    case Granularity::tile:
      form.outer = OuterScale::tile;
      form.tile_rows = spec.tile_rows;
      form.group = spec.tile_cols;
      break;
    case Granularity::group:
      if (spec.format->kind == FormatKind::integer) break;
      form.outer = OuterScale::row_group;
      form.group = spec.group;
      break;
    case Granularity::column:
    case Granularity::own:
      break;
  }
  form.exact_in_bf16 = form.outer != OuterScale::none;
  return form;
}

std::int64_t outer_scale_count(const OperandForm& form, std::int64_t rows, std::int64_t cols) {
  switch (form.outer) {
    case OuterScale::none:
      return 0;
    case OuterScale::tensor:
      return 1;
    case OuterScale::row:
      return rows;
    case OuterScale::row_group:
      return rows * ceil_div(cols, form.group);
    case OuterScale::tile:
      return ceil_div(rows, form.tile_rows) * ceil_div(cols, form.group);
  }
  throw std::logic_error("outer scale");
}

}  // namespace quantmap
