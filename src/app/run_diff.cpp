#include "app/run_diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "app/evaluation_records.hpp"
#include "core/error.hpp"
#include "evals/comparison.hpp"
#include "evals/paired_items.hpp"
#include "reports/evaluation.hpp"

namespace quantmap {
namespace {

RunRecord complete_run(const Database& database, const std::string& path, std::int64_t id) {
  const auto run = database.run(id);
  if (!run) fail_input("diff", path, fmt::format("there is no run {}", id));
  if (run->status != "complete")
    fail_input("diff", path,
               fmt::format("run {} is not complete ({} of {} windows are stored; {} --resume goes on)", id,
                           database.stored_windows(id), run->windows, run->command));
  return *run;
}

struct Side {
  RunRecord run;
  std::vector<SchemeRecord> schemes;
  std::map<std::string, std::int64_t> position;  // by full spelling
};

Side side_of(const Database& database, const std::string& path, std::int64_t id) {
  Side side{complete_run(database, path, id), database.schemes(id), {}};
  for (const SchemeRecord& scheme : side.schemes) side.position.emplace(scheme.spec, scheme.position);
  return side;
}

bool same_tokens(const RunRecord& a, const RunRecord& b) {
  const auto key = [](const RunRecord& r) {
    return std::tie(r.token_ids_sha256, r.ctx, r.stride, r.windows, r.score, r.bos, r.first_ids);
  };
  return a.windows > 0 && key(a) == key(b);
}

SchemeWindows windows_of(const Database& database, std::int64_t run, std::int64_t position) {
  std::vector<WindowScores> scores;
  for (const WindowRecord& record : database.windows(run, position))
    scores.push_back(WindowScores::unpack(position, record.window, record.tokens, record.sums));
  return scheme_windows(position, scores);
}

bool same_counts(const std::vector<Cluster>& a, const std::vector<Cluster>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Cluster& x, const Cluster& y) { return x.count == y.count; });
}

class Differ {
 public:
  Differ(const Database& database, const std::string& path, std::int64_t first, std::int64_t second,
         std::uint64_t seed)
      : database_(database),
        a_(side_of(database, path, first)),
        b_(side_of(database, path, second)),
        seed_(seed) {
    diff_.first = a_.run;
    diff_.second = b_.run;
  }

  RunDiff run(const std::string& path) {
    for (const SchemeRecord& scheme : b_.schemes) {
      const auto at = a_.position.find(scheme.spec);
      if (at == a_.position.end())
        diff_.only_second.push_back(scheme.scheme);
      else
        both_.emplace_back(a_.schemes[static_cast<std::size_t>(at->second)], scheme);
    }
    for (const SchemeRecord& scheme : a_.schemes)
      if (!b_.position.count(scheme.spec)) diff_.only_first.push_back(scheme.scheme);
    metrics();
    tasks();
    layers();
    if (diff_.metrics.empty() && diff_.tasks.empty() && diff_.layer_rows == 0)
      fail_input("diff", path,
                 fmt::format("runs {} ({}) and {} ({}) have no row in common", a_.run.id, a_.run.command,
                             b_.run.id, b_.run.command));
    if (a_.run.model_sha256 != b_.run.model_sha256)
      diff_.notes.emplace_back("the models differ: each KL is to the run's own reference");
    if (!diff_.metrics.empty() && a_.run.tokenizer_sha256 != b_.run.tokenizer_sha256)
      diff_.notes.emplace_back("the tokenizers differ: numbers per token are of other tokens");
    return diff_;
  }

 private:
  void metrics() {
    if (a_.run.windows == 0 || b_.run.windows == 0) return;
    const auto of_first = database_.evaluations(a_.run.id), of_second = database_.evaluations(b_.run.id);
    if (of_first.empty() || of_second.empty()) return;
    const bool same = same_tokens(a_.run, b_.run);
    std::vector<std::pair<SchemeWindows, SchemeWindows>> windows;
    for (const auto& [first, second] : both_)
      windows.emplace_back(windows_of(database_, a_.run.id, first.position),
                           windows_of(database_, b_.run.id, second.position));
    for (const auto& [metric, member] :
         {std::pair("kl_mean", &SchemeWindows::kl), std::pair("ln_ppl_ratio", &SchemeWindows::nll)}) {
      const bool kl = member == &SchemeWindows::kl;
      std::vector<ClusterPair> pairs;
      std::vector<std::size_t> which;
      for (std::size_t i = 0; i < both_.size(); ++i) {
        if (kl && both_[i].second.position == 0) continue;  // 0 by definition
        const auto &scheme = windows[i].second.*member, &than = windows[i].first.*member;
        pairs.push_back({scheme, than, same && same_counts(scheme, than)});
        which.push_back(i);
      }
      const std::vector<Comparison> all = compare_pairs(metric, pairs, seed_);
      for (std::size_t k = 0; k < all.size(); ++k) {
        const auto& [first, second] = both_[which[k]];
        const EvaluationRecord& a = of_first[static_cast<std::size_t>(first.position)];
        const EvaluationRecord& b = of_second[static_cast<std::size_t>(second.position)];
        const std::vector<SchemeRecord> names = {second, first};
        Comparison one = all[k];
        one.scheme = 0;
        one.than = 1;
        diff_.metrics.push_back({metric, kl ? a.kl_mean : a.ppl, kl ? b.kl_mean : b.ppl, pairs[k].paired,
                                 comparison_records(names, {one})[0]});
      }
    }
  }

  // Whether each item was answered right, by `acc`'s rule, from its stored choices.
  struct Answers {
    std::map<std::int64_t, std::uint8_t> right;
    bool one_answer = true;  // of one right choice an item; else acc is no matter of right and wrong
  };
  std::map<std::string, Answers> answers(std::int64_t run, std::int64_t position) const {
    std::map<std::string, Answers> of_task;
    const std::vector<TaskItemRecord> rows = database_.task_items(run, position);
    for (std::size_t i = 0; i < rows.size();) {
      std::size_t end = i, best = i, gold = 0;
      bool nan = false;
      for (; end < rows.size() && rows[end].task == rows[i].task && rows[end].item == rows[i].item; ++end) {
        nan = nan || !rows[end].loglikelihood;
        gold += rows[end].gold;
        if (!nan && *rows[end].loglikelihood > *rows[best].loglikelihood) best = end;
      }
      Answers& task = of_task[rows[i].task];
      task.one_answer = task.one_answer && gold == 1;
      task.right[rows[i].item] = !nan && (end - i == 1 ? rows[i].greedy : rows[best].gold);
      i = end;
    }
    return of_task;
  }

  void tasks() {
    const auto acc_of = [](const std::vector<TaskScoreRecord>& scores, std::int64_t position,
                           const std::string& task) -> const TaskScoreRecord* {
      for (const TaskScoreRecord& s : scores)
        if (s.scheme_position == position && s.task == task) return &s;
      return nullptr;
    };
    const auto of_first = database_.task_scores(a_.run.id), of_second = database_.task_scores(b_.run.id);
    if (of_first.empty() || of_second.empty()) return;
    for (const auto& [first, second] : both_) {
      const auto one = answers(a_.run.id, first.position), two = answers(b_.run.id, second.position);
      for (const auto& [task, of_one] : one) {
        const auto at = two.find(task);
        if (at == two.end()) continue;
        const TaskScoreRecord *a = acc_of(of_first, first.position, task),
                              *b = acc_of(of_second, second.position, task);
        if (!a || !b) continue;
        TaskChange change;
        change.scheme = second.scheme;
        change.task = task;
        if (!of_one.one_answer || !at->second.one_answer) {
          change.items = std::min(a->items, b->items);
          change.first = a->acc;
          change.second = b->acc;
          change.verdict = "not tested: several right answers an item";
          diff_.tasks.push_back(std::move(change));
          continue;
        }
        std::vector<std::uint8_t> right_one, right_two;
        for (const auto& [item, right] : of_one.right)
          if (const auto other = at->second.right.find(item); other != at->second.right.end()) {
            right_one.push_back(right);
            right_two.push_back(other->second);
          }
        add_accuracies(change, flips(right_two, right_one));
        diff_.tasks.push_back(std::move(change));
      }
    }
  }

  static void add_accuracies(TaskChange& change, const Flips& f) {
    const AccuracyDifference d = accuracy_difference(f);
    change.items = f.items();
    if (change.items > 0) {
      change.first = static_cast<double>(f.both + f.only_b) / static_cast<double>(f.items());
      change.second = static_cast<double>(f.both + f.only_a) / static_cast<double>(f.items());
    }
    change.difference = d.difference;
    change.stderr_of_difference = d.stderr_of_difference;
    change.low = d.interval.low;
    change.high = d.interval.high;
    change.p = d.p;
    change.only_first = f.only_b;
    change.only_second = f.only_a;
    constexpr double kLevel = 1 - kConfidence;
    change.verdict = !d.p                ? "undefined"
                     : f.flipped() == 0  ? "equal"
                     : *d.p > kLevel     ? "not distinguishable"
                     : *d.difference > 0 ? "higher"
                                         : "lower";
  }

  void layers() {
    using Place = std::tuple<std::string, std::int64_t, std::string, std::string, std::string>;
    const auto of_side = [&](const Side& side) {
      std::map<Place, LayerErrorRecord> rows;
      for (LayerErrorRecord& row : database_.layer_errors(side.run.id)) {
        const std::string& spec = side.schemes[static_cast<std::size_t>(row.scheme_position)].spec;
        Place place(spec, row.layer, row.site, row.scope, row.kind);
        rows.emplace(std::move(place), std::move(row));
      }
      return rows;
    };
    const auto one = of_side(a_), two = of_side(b_);
    for (const auto& [place, row] : one) {
      const auto at = two.find(place);
      if (at == two.end()) continue;
      ++diff_.layer_rows;
      const LayerErrorRecord& other = at->second;
      if (row.rel_error == other.rel_error && row.row_error_p50 == other.row_error_p50 &&
          row.row_error_p90 == other.row_error_p90 && row.max_abs_error == other.max_abs_error)
        ++diff_.layer_equal;
      else
        diff_.layers.push_back(
            {row, other, b_.schemes[static_cast<std::size_t>(other.scheme_position)].scheme});
    }
    const auto change = [](const LayerChange& l) {
      const double a = l.first.rel_error.value_or(0), b = l.second.rel_error.value_or(0);
      return a > 0 && b > 0 ? std::abs(std::log(b / a)) : a == b ? 0.0 : HUGE_VAL;
    };
    std::stable_sort(diff_.layers.begin(), diff_.layers.end(),
                     [&](const LayerChange& x, const LayerChange& y) { return change(x) > change(y); });
  }

  const Database& database_;
  Side a_, b_;
  std::uint64_t seed_;
  std::vector<std::pair<SchemeRecord, SchemeRecord>> both_;  // first, second
  RunDiff diff_;
};

}  // namespace

RunDiff diff_runs(const Database& database, const std::string& path, std::int64_t first, std::int64_t second,
                  std::uint64_t seed) {
  return Differ(database, path, first, second, seed).run(path);
}

}  // namespace quantmap
