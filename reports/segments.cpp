#include "reports/segments.hpp"

#include <fmt/format.h>

#include "reports/amounts.hpp"
#include "reports/run_document.hpp"

namespace quantmap {

Table segment_summary(std::span<const SegmentRecord> segments) {
  Table table;
  table.title = "Segments";
  table.columns = {{"segment"},    {"scheme"},       {"tokens"},  {"windows"}, {"KL (nats)"},
                   {"perplexity"}, {"ln PPL ratio"}, {"top-1 %"}, {"flips"}};
  for (const SegmentRecord& s : segments) {
    const bool reference = s.position == 0;
    table.rows.push_back(
        {s.segment.empty() ? std::string("(none)") : s.segment, s.scheme, s.tokens, s.windows,
         reference && s.kl_mean ? std::string("0") : with_error(s.kl_mean, s.kl_stderr),
         s.ppl ? fmt::format("{:.4g}", *s.ppl) : "-",
         reference && s.nll ? std::string("0") : with_error(s.ln_ppl_ratio, s.ln_ppl_ratio_stderr),
         s.top1_agreement ? fmt::format("{:.2f}", 100 * *s.top1_agreement) : "-", s.margin_flips});
    if (s.status != "ok") table.notes.push_back(fmt::format("{} of {}: {}", s.segment, s.scheme, s.status));
  }
  return table;
}

nlohmann::ordered_json segment_rows(std::span<const SegmentRecord> segments) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const SegmentRecord& s : segments)
    rows.push_back({{"segment", s.segment},
                    {"scheme", s.scheme},
                    {"tokens", s.tokens},
                    {"windows", s.windows},
                    {"nll", json_of(s.nll)},
                    {"nll_stderr", json_of(s.nll_stderr)},
                    {"ppl", json_of(s.ppl)},
                    {"ln_ppl_ratio", json_of(s.ln_ppl_ratio)},
                    {"ln_ppl_ratio_stderr", json_of(s.ln_ppl_ratio_stderr)},
                    {"ln_ppl_ratio_low", json_of(s.ln_ppl_ratio_low)},
                    {"ln_ppl_ratio_high", json_of(s.ln_ppl_ratio_high)},
                    {"kl_mean", json_of(s.kl_mean)},
                    {"kl_stderr", json_of(s.kl_stderr)},
                    {"kl_low", json_of(s.kl_low)},
                    {"kl_high", json_of(s.kl_high)},
                    {"kl_max", json_of(s.kl_max)},
                    {"top1_agreement", json_of(s.top1_agreement)},
                    {"top1_stderr", json_of(s.top1_stderr)},
                    {"margin_flips", s.margin_flips},
                    {"status", s.status}});
  return rows;
}

}  // namespace quantmap
