// The one list of fields of each record: it drives insert and select, and a test compares it with the views.
// Adding a field to a record is one line here and one column in schema.sql.
#pragma once

#include <tuple>

#include "store/records.hpp"

namespace quantmap::store {

enum class Kept {
  column,  // of the record's own table
  blob,    // the same, for a string that holds bytes
  site,    // in table `site`, which the record's `site_id` names
  joined,  // of another table: read with the record, not written with it
};

template <class Record, class T>
struct Field {
  const char* name;
  T Record::*member;
  Kept kept = Kept::column;
  const T& of(const Record& record) const { return record.*member; }
  T& of(Record& record) const { return record.*member; }
};
template <class Record, class T>
Field(const char*, T Record::*) -> Field<Record, T>;
template <class Record, class T>
Field(const char*, T Record::*, Kept) -> Field<Record, T>;

// A field of a record inside the record.
template <class Record, class Inner, class T>
struct InnerField {
  const char* name;
  Inner Record::*inner;
  T Inner::*member;
  Kept kept = Kept::column;
  const T& of(const Record& record) const { return record.*inner.*member; }
  T& of(Record& record) const { return record.*inner.*member; }
};
template <class Record, class Inner, class T>
InnerField(const char*, Inner Record::*, T Inner::*) -> InnerField<Record, Inner, T>;
template <class Record, class Inner, class T>
InnerField(const char*, Inner Record::*, T Inner::*, Kept) -> InnerField<Record, Inner, T>;

// Where a record type lives. `table` takes inserts; `source` is what a select reads, in `order`. All but
// RunRecord have a column `run` before the fields.
template <class Record>
struct Stored;

template <>
struct Stored<RunRecord> {
  static constexpr const char* table = "run";
  static constexpr const char* source = "run";
  static constexpr const char* order = "id";
  static constexpr auto fields = std::make_tuple(  // and `id`, which the database gives
      Field{"key", &RunRecord::key}, Field{"command", &RunRecord::command},
      Field{"status", &RunRecord::status}, Field{"command_line", &RunRecord::command_line},
      Field{"version", &RunRecord::version}, Field{"git_revision", &RunRecord::git_revision},
      Field{"machine", &RunRecord::machine}, Field{"device", &RunRecord::device},
      Field{"threads", &RunRecord::threads}, Field{"seed", &RunRecord::seed},
      Field{"started_at", &RunRecord::started_at}, Field{"finished_at", &RunRecord::finished_at},
      Field{"model", &RunRecord::model}, Field{"model_type", &RunRecord::model_type},
      Field{"model_sha256", &RunRecord::model_sha256},
      Field{"tokenizer_sha256", &RunRecord::tokenizer_sha256}, Field{"text_sha256", &RunRecord::text_sha256},
      Field{"token_ids_sha256", &RunRecord::token_ids_sha256}, Field{"text", &RunRecord::text},
      Field{"protocol", &RunRecord::protocol}, Field{"ctx", &RunRecord::ctx},
      Field{"stride", &RunRecord::stride}, Field{"windows", &RunRecord::windows},
      Field{"score", &RunRecord::score}, Field{"bos", &RunRecord::bos}, Field{"compute", &RunRecord::compute},
      Field{"first_ids", &RunRecord::first_ids}, Field{"text_tokens", &RunRecord::text_tokens},
      Field{"dropped_tokens", &RunRecord::dropped_tokens}, Field{"plan_windows", &RunRecord::plan_windows},
      Field{"notes", &RunRecord::notes});
};

template <>
struct Stored<SchemeRecord> {
  static constexpr const char* table = "scheme";
  static constexpr const char* source = "scheme";
  static constexpr const char* order = "position";
  static constexpr auto fields =
      std::make_tuple(Field{"position", &SchemeRecord::position}, Field{"scheme", &SchemeRecord::scheme},
                      Field{"spec", &SchemeRecord::spec}, Field{"weights", &SchemeRecord::weights},
                      Field{"activations", &SchemeRecord::activations}, Field{"kv", &SchemeRecord::kv});
};

template <>
struct Stored<WindowRecord> {
  static constexpr const char* table = "window";
  static constexpr const char* source = "window";
  static constexpr const char* order = "position, window";
  static constexpr auto fields = std::make_tuple(
      Field{"position", &WindowRecord::scheme_position}, Field{"window", &WindowRecord::window},
      Field{"tokens", &WindowRecord::tokens, Kept::blob}, Field{"sums", &WindowRecord::sums, Kept::blob});
};

template <>
struct Stored<StateRecord> {
  static constexpr const char* table = "state";
  static constexpr const char* source = "state";
  static constexpr const char* order = "position";
  static constexpr auto fields = std::make_tuple(Field{"position", &StateRecord::scheme_position},
                                                 Field{"state", &StateRecord::state, Kept::blob});
};

template <>
struct Stored<EvaluationRecord> {  // `notes` are rows of their own (results.cpp)
  using E = EvaluationRecord;
  static constexpr const char* table = "evaluation";
  static constexpr const char* source = "evaluations";
  static constexpr const char* order = "position";
  static constexpr auto fields = std::make_tuple(
      InnerField{"position", &E::scheme, &SchemeRecord::position},
      InnerField{"scheme", &E::scheme, &SchemeRecord::scheme, Kept::joined},
      InnerField{"spec", &E::scheme, &SchemeRecord::spec, Kept::joined},
      InnerField{"weights", &E::scheme, &SchemeRecord::weights, Kept::joined},
      InnerField{"activations", &E::scheme, &SchemeRecord::activations, Kept::joined},
      InnerField{"kv", &E::scheme, &SchemeRecord::kv, Kept::joined}, Field{"ppl", &E::ppl},
      Field{"ppl_stderr", &E::ppl_stderr}, Field{"nll", &E::nll}, Field{"nll_stderr", &E::nll_stderr},
      Field{"ln_ppl_ratio", &E::ln_ppl_ratio}, Field{"ln_ppl_ratio_stderr", &E::ln_ppl_ratio_stderr},
      Field{"kl_mean", &E::kl_mean}, Field{"kl_stderr", &E::kl_stderr}, Field{"kl_p50", &E::kl_p50},
      Field{"kl_p90", &E::kl_p90}, Field{"kl_p99", &E::kl_p99}, Field{"kl_p999", &E::kl_p999},
      Field{"kl_max", &E::kl_max}, Field{"kl_infinite", &E::kl_infinite}, Field{"tv_mean", &E::tv_mean},
      Field{"top1_agreement", &E::top1_agreement}, Field{"top1_stderr", &E::top1_stderr},
      Field{"margin_flips", &E::margin_flips}, Field{"delta_p_mean", &E::delta_p_mean},
      Field{"delta_p_rms", &E::delta_p_rms}, Field{"tokens_scored", &E::tokens_scored},
      Field{"windows", &E::windows}, Field{"bpw_quantized", &E::bpw_quantized},
      Field{"bpw_model", &E::bpw_model}, Field{"weight_bytes", &E::weight_bytes},
      Field{"kv_bytes_per_token", &E::kv_bytes_per_token}, Field{"seconds", &E::seconds},
      Field{"ppl_stderr_iid", &E::ppl_stderr_iid}, Field{"kl_stderr_iid", &E::kl_stderr_iid},
      Field{"ppl_low", &E::ppl_low}, Field{"ppl_high", &E::ppl_high},
      Field{"ln_ppl_ratio_low", &E::ln_ppl_ratio_low}, Field{"ln_ppl_ratio_high", &E::ln_ppl_ratio_high},
      Field{"kl_low", &E::kl_low}, Field{"kl_high", &E::kl_high}, Field{"top1_low", &E::top1_low},
      Field{"top1_high", &E::top1_high}, Field{"status", &E::status});
};

template <>
struct Stored<ComparisonRecord> {
  using C = ComparisonRecord;
  static constexpr const char* table = "comparison";
  static constexpr const char* source = "comparisons";
  static constexpr const char* order =
      "metric DESC, position, than";  // ln_ppl_ratio first, as they were given
  static constexpr auto fields = std::make_tuple(
      Field{"position", &C::position}, Field{"scheme", &C::scheme, Kept::joined}, Field{"than", &C::than},
      Field{"than_scheme", &C::than_scheme, Kept::joined}, Field{"metric", &C::metric},
      Field{"difference", &C::difference}, Field{"stderr", &C::stderr_of_difference}, Field{"low", &C::low},
      Field{"high", &C::high}, Field{"bootstrap_low", &C::bootstrap_low},
      Field{"bootstrap_high", &C::bootstrap_high}, Field{"p", &C::p}, Field{"p_holm", &C::p_holm},
      Field{"windows", &C::windows}, Field{"verdict", &C::verdict}, Field{"more_windows", &C::more_windows});
};

template <>
struct Stored<SegmentRecord> {
  using G = SegmentRecord;
  static constexpr const char* table = "segment_score";
  static constexpr const char* source = "segment_scores";
  static constexpr const char* order = "ordinal";  // as they were given
  static constexpr auto fields = std::make_tuple(
      Field{"position", &G::position}, Field{"scheme", &G::scheme, Kept::joined},
      Field{"segment", &G::segment}, Field{"tokens", &G::tokens}, Field{"windows", &G::windows},
      Field{"nll", &G::nll}, Field{"nll_stderr", &G::nll_stderr}, Field{"ppl", &G::ppl},
      Field{"ln_ppl_ratio", &G::ln_ppl_ratio}, Field{"ln_ppl_ratio_stderr", &G::ln_ppl_ratio_stderr},
      Field{"ln_ppl_ratio_low", &G::ln_ppl_ratio_low}, Field{"ln_ppl_ratio_high", &G::ln_ppl_ratio_high},
      Field{"kl_mean", &G::kl_mean}, Field{"kl_stderr", &G::kl_stderr}, Field{"kl_low", &G::kl_low},
      Field{"kl_high", &G::kl_high}, Field{"kl_max", &G::kl_max}, Field{"top1_agreement", &G::top1_agreement},
      Field{"top1_stderr", &G::top1_stderr}, Field{"margin_flips", &G::margin_flips},
      Field{"status", &G::status});
};

template <>
struct Stored<LayerErrorRecord> {
  using L = LayerErrorRecord;
  static constexpr const char* table = "layer_error";
  static constexpr const char* source = "layer_error JOIN site ON site.id = site_id";
  static constexpr const char* order = "layer_error.rowid";  // as they were given
  static constexpr auto fields = std::make_tuple(
      Field{"position", &L::scheme_position}, Field{"layer", &L::layer, Kept::site},
      Field{"site", &L::site, Kept::site}, Field{"scope", &L::scope}, Field{"kind", &L::kind},
      Field{"rel_error", &L::rel_error}, Field{"rel_error_residual", &L::rel_error_residual},
      Field{"sqnr_db", &L::sqnr_db}, Field{"cosine", &L::cosine}, Field{"max_abs_error", &L::max_abs_error},
      Field{"amax", &L::amax}, Field{"kurtosis", &L::kurtosis}, Field{"saturated", &L::saturated},
      Field{"nonfinite", &L::nonfinite}, Field{"count", &L::count}, Field{"row_error_p50", &L::row_error_p50},
      Field{"row_error_p90", &L::row_error_p90}, Field{"rel_error_rest", &L::rel_error_rest},
      Field{"status", &L::status});
};

template <>
struct Stored<OutlierRecord> {
  using O = OutlierRecord;
  static constexpr const char* table = "outlier";
  static constexpr const char* source = "outlier JOIN site ON site.id = site_id";
  static constexpr const char* order = "outlier.rowid";
  static constexpr auto fields =
      std::make_tuple(Field{"layer", &O::layer, Kept::site}, Field{"site", &O::site, Kept::site},
                      Field{"window", &O::window}, Field{"token", &O::token}, Field{"channel", &O::channel},
                      Field{"value", &O::value}, Field{"median_abs", &O::median_abs},
                      Field{"ratio", &O::ratio}, Field{"massive", &O::massive}, Field{"status", &O::status});
};

template <>
struct Stored<SiteStatisticsRecord> {
  using S = SiteStatisticsRecord;
  static constexpr const char* table = "site_statistic";
  static constexpr const char* source = "site_statistic JOIN site ON site.id = site_id";
  static constexpr const char* order = "site_statistic.rowid";
  static constexpr auto fields = std::make_tuple(
      Field{"layer", &S::layer, Kept::site}, Field{"site", &S::site, Kept::site}, Field{"count", &S::count},
      Field{"nonfinite", &S::nonfinite}, Field{"mean", &S::mean}, Field{"rms", &S::rms},
      Field{"amax", &S::amax}, Field{"crest", &S::crest}, Field{"kurtosis", &S::kurtosis},
      Field{"rows", &S::rows}, Field{"massive_values", &S::massive_values},
      Field{"massive_rows", &S::massive_rows}, Field{"windows", &S::windows},
      Field{"massive_windows", &S::massive_windows}, Field{"status", &S::status});
};

template <>
struct Stored<OutlierShareRecord> {
  using O = OutlierShareRecord;
  static constexpr const char* table = "outlier_share";
  static constexpr const char* source = "outlier_share JOIN site ON site.id = site_id";
  static constexpr const char* order = "outlier_share.rowid";
  static constexpr auto fields = std::make_tuple(
      Field{"position", &O::scheme_position}, Field{"layer", &O::layer, Kept::site},
      Field{"site", &O::site, Kept::site}, Field{"error2", &O::error2}, Field{"rel_error", &O::rel_error},
      Field{"massive_values", &O::massive_values}, Field{"massive_rows", &O::massive_rows},
      Field{"first_tokens", &O::first_tokens}, Field{"rest_error2", &O::rest_error2},
      Field{"rest_rel_error", &O::rest_rel_error}, Field{"rest_massive_values", &O::rest_massive_values},
      Field{"rest_massive_rows", &O::rest_massive_rows}, Field{"nonfinite", &O::nonfinite},
      Field{"status", &O::status});
};

// Calls visit(field, index) for every field of a record type, in order.
template <class Record, class Visit>
void for_each_field(Visit&& visit) {
  int index = 0;
  std::apply([&](const auto&... field) { (visit(field, index++), ...); }, Stored<Record>::fields);
}

}  // namespace quantmap::store
