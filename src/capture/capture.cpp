#include "capture/capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/size.hpp"
#include "model/forward.hpp"

namespace quantmap {
namespace {

// Weights go to the disk in commits of this size.
constexpr std::int64_t kCommitBytes = std::int64_t{128} << 20;

// The step of a layer that a site belongs to: sites of one step are open at the same time.
int step_of(const CaptureSite& site) {
  switch (site.site) {
    case Site::linear_input:
    case Site::linear_output:
      switch (site.linear) {
        case LinearId::q:
        case LinearId::k:
        case LinearId::v:
          return 0;
        case LinearId::o:
          return 1;
        case LinearId::gate:
        case LinearId::up:
          return 2;
        case LinearId::down:
          break;
      }
      return 3;
    case Site::key:
    case Site::value:
      return 0;
    default:
      return 4;
  }
}

bool of_head(const CaptureSite& site) {
  return site.site == Site::final_norm || (site.layer < 0 && site.site == Site::linear_output);
}

// Chunks under way and what a thread needs for one, where sites need assembling.
std::int64_t own_bytes(const CaptureContents& contents, int threads) {
  const std::int64_t windows = contents.info.windows, kept = static_cast<std::int64_t>(contents.rows.size());
  std::int64_t scratch = 0, steps[5] = {};
  std::int64_t most = 0;
  int layer = -2;
  for (const CaptureSite& site : contents.sites) {
    const ChunkShape chunk = site_shape(site, windows, kept).chunk;
    scratch = std::max(scratch, ChunkWriter::scratch_bytes(chunk) + kTileRows * site.width * 4);
    if (site.layer != layer) {
      std::fill(std::begin(steps), std::end(steps), 0);
      layer = site.layer;
    }
    const bool head = site.layer < 0 && site.site == Site::linear_output;
    const bool aligned = kept == contents.info.ctx && (head ? 16 : kTileRows) % chunk.rows == 0;
    // Aligned: one or two chunks of columns on each thread. Else whole rows of chunks, each met by two
    // tiles.
    std::int64_t& step = steps[step_of(site)];
    step +=
        aligned ? threads * 2 * chunk.rows * chunk.cols * 4 : (2 * threads + 1) * chunk.rows * site.width * 4;
    most = std::max(most, step);
  }
  for (const TensorEntry& tensor : contents.tensors) {
    const ChunkShape chunk = tensor_shape(tensor).chunk;
    scratch = std::max(scratch, ChunkWriter::scratch_bytes(chunk) + chunk.rows * chunk.cols * 4);
  }
  return threads * scratch + most;
}

std::int64_t bytes_for(const CaptureContents& contents, const Checkpoint& checkpoint, std::int64_t windows) {
  const int threads = thread_count();
  const std::int64_t ctx = contents.info.ctx;
  return own_bytes(contents, threads) + Forward::bytes_needed(checkpoint,
                                                              {{std::nullopt, contents.info.compute}},
                                                              {windows * ctx, ctx}, threads);
}

void require_memory(const CaptureJob& job) {
  if (job.contents.sites.empty()) return;
  const std::int64_t least = bytes_for(job.contents, *job.checkpoint, 1);
  if (least > job.memory)
    fail_usage("--memory",
               fmt::format("{} is too little for one window of {} tokens: the least possible is {}M",
                           format_size(job.memory), job.contents.info.ctx, (least + (1 << 20) - 1) >> 20));
}

class CaptureRun {
 public:
  CaptureRun(const CaptureJob& job, CaptureWriter writer)
      : job_(job),
        contents_(job.contents),
        checkpoint_(*job.checkpoint),
        writer_(std::move(writer)),
        windows_(contents_.info.windows),
        ctx_(contents_.info.ctx),
        kept_(static_cast<std::int64_t>(contents_.rows.size())) {
    position_.assign(static_cast<std::size_t>(ctx_), -1);
    for (std::size_t i = 0; i < contents_.rows.size(); ++i)
      position_[static_cast<std::size_t>(contents_.rows[i])] = static_cast<std::int32_t>(i);
    for (std::size_t i = 0; i < contents_.sites.size(); ++i) index_site(i);
  }

  CaptureReport run() {
    CaptureReport report;
    report.datasets = writer_.datasets();
    report.was_complete = writer_.complete() == writer_.datasets();
    const CapturePlan plan = make_plan();
    if (!report.was_complete) {
      if (job_.announce) job_.announce(plan);
      write_tensors();
      write_sites(plan);
    }
    writer_.mark_file();  // also where a kill came between the last dataset and this
    writer_.commit();
    report.overflows = writer_.overflows();
    return report;
  }

 private:
  static std::size_t slot(Site site, LinearId linear) {
    return static_cast<std::size_t>(site) * kLayerLinears.size() +
           (site == Site::linear_input || site == Site::linear_output ? static_cast<std::size_t>(linear) : 0);
  }
  static constexpr std::size_t kSlots =
      (static_cast<std::size_t>(Site::final_norm) + 1) * kLayerLinears.size();  // the last Site

  void index_site(std::size_t i) {
    const CaptureSite& site = contents_.sites[i];
    const auto row = static_cast<std::size_t>(site.layer) + 1;  // 0: outside the layers
    if (by_place_.size() <= row) by_place_.resize(row + 1, std::vector<std::ptrdiff_t>(kSlots, -1));
    by_place_[row][slot(site.site, site.linear)] = static_cast<std::ptrdiff_t>(i);
  }
  std::ptrdiff_t find_site(Site site, LinearId linear, int layer) const {
    const auto row = static_cast<std::size_t>(layer) + 1;
    return row < by_place_.size() ? by_place_[row][slot(site, linear)] : -1;
  }

  std::int64_t first_window() const {
    std::int64_t first = windows_;
    for (std::size_t i = 0; i < contents_.sites.size(); ++i) first = std::min(first, writer_.site_windows(i));
    return first;
  }

  CapturePlan make_plan() const {
    CapturePlan plan;
    const auto rows = static_cast<std::int64_t>(kept_);
    for (std::size_t i = 0; i < contents_.sites.size(); ++i)
      plan.file_bytes += (windows_ - writer_.site_windows(i)) * rows * contents_.sites[i].width *
                         store_bytes(contents_.info.store);
    for (std::size_t i = 0; i < contents_.tensors.size(); ++i)
      if (!writer_.tensor_complete(i)) plan.file_bytes += tensor_bytes(contents_.tensors[i]);
    plan.bytes = own_bytes(contents_, thread_count());
    const std::int64_t left = windows_ - first_window();
    if (left == 0) return plan;
    require_memory(job_);
    std::int64_t fits = 1, beyond = left + 1;
    while (beyond - fits > 1) {
      const std::int64_t middle = fits + (beyond - fits) / 2;
      (bytes_for(contents_, checkpoint_, middle) <= job_.memory ? fits : beyond) = middle;
    }
    plan.passes = (left + fits - 1) / fits;
    plan.windows_per_pass = (left + plan.passes - 1) / plan.passes;
    plan.bytes = bytes_for(contents_, checkpoint_, plan.windows_per_pass);
    return plan;
  }

  std::int64_t tensor_bytes(const TensorEntry& tensor) const {
    const DatasetShape shape = tensor_shape(tensor);
    return shape.rows * shape.cols * store_bytes(contents_.info.store);
  }

  Walker walker() const { return {std::nullopt, contents_.info.compute}; }

  // What is committed stays; what came since the last commit is dropped.
  void stop_if_asked() const {
    if (!job_.interrupted || !job_.interrupted()) return;
    throw Error(ErrorKind::interrupted,
                fmt::format("interrupted: {}: {} of {} datasets are complete, --resume goes on",
                            job_.path.string(), writer_.complete(), writer_.datasets()));
  }

  void advance(std::int64_t values) const {
    if (job_.progress) job_.progress(values * store_bytes(contents_.info.store));
  }

  void write_tensors() {
    std::int64_t pending = 0;
    const auto commit = [&] {
      writer_.commit();
      pending = 0;
      stop_if_asked();
    };
    for (std::size_t i = 0; i < contents_.tensors.size(); ++i) {
      if (writer_.tensor_complete(i)) continue;
      const TensorEntry& tensor = contents_.tensors[i];
      ChunkWriter& to = writer_.tensor(i);
      const DatasetShape& shape = to.shape();
      const std::int64_t step = shape.chunk.rows;
      parallel_for((shape.rows + step - 1) / step, [&](std::int64_t task, int) {
        const std::int64_t begin = task * step, rows = std::min(step, shape.rows - begin);
        std::vector<float> values(static_cast<std::size_t>(rows * shape.cols));
        checkpoint_.read(tensor.name, begin, begin + rows, values.data());
        to.put(begin, 0, rows, shape.cols, values.data(), shape.cols);
        advance(rows * shape.cols);
      });
      checkpoint_.release(tensor.name);
      writer_.mark_tensor(i);
      pending += tensor_bytes(tensor);
      if (pending >= kCommitBytes || (job_.interrupted && job_.interrupted())) commit();
    }
    if (pending > 0) commit();
  }

  void write_sites(const CapturePlan& plan) {
    const std::int64_t first = first_window();
    if (first == windows_) return;
    Forward forward(checkpoint_, {walker()}, {plan.windows_per_pass * ctx_, ctx_});
    if (job_.rope) forward.set_rope(*job_.rope);
    forward.set_hook([this](const SiteView& view) { take(view); });
    for (std::int64_t begin = first; begin < windows_; begin += plan.windows_per_pass)
      run_pass(forward, begin, std::min(windows_, begin + plan.windows_per_pass));
  }

  bool wants(std::size_t site, std::int64_t end) const { return writer_.site_windows(site) < end; }

  void run_pass(Forward& forward, std::int64_t begin, std::int64_t end) {
    int last_layer = -1;
    bool head = false;
    for (std::size_t i = 0; i < contents_.sites.size(); ++i) {
      if (!wants(i, end)) continue;
      last_layer = std::max(last_layer, contents_.sites[i].layer);
      head = head || of_head(contents_.sites[i]);
    }
    if (head) last_layer = checkpoint_.config().layers - 1;
    std::vector<PassWindow> windows;
    for (std::int64_t w = begin; w < end; ++w)
      windows.push_back(
          {w, std::span(contents_.tokens)
                  .subspan(static_cast<std::size_t>(w * ctx_), static_cast<std::size_t>(ctx_))});
    stop_if_asked();
    forward.start(std::move(windows));
    finish(end, [](const CaptureSite& site) { return site.site == Site::embedding; });
    for (int layer = 0; layer <= last_layer; ++layer) {
      stop_if_asked();
      forward.run_layer(layer);
      finish(end, [&](const CaptureSite& site) { return site.layer == layer; });
    }
    if (!head) return;
    stop_if_asked();
    const std::ptrdiff_t logits = find_site(Site::linear_output, LinearId::q, -1);
    const bool all = logits >= 0 && wants(static_cast<std::size_t>(logits), end);
    forward.run_head(
        [&](std::int64_t) {
          return RowRange{0, all ? ctx_ : 0};
        },
        [&](const HeadTile& tile) {
          const std::int64_t vocab = checkpoint_.config().vocab_size;
          take({Site::linear_output, LinearId::q, -1, 0, tile.window, tile.row_begin, tile.rows, 0, vocab,
                vocab, tile.logits, vocab});
        });
    finish(end, of_head);
  }

  template <class Which>
  void finish(std::int64_t end, const Which& which) {
    bool any = false;
    for (std::size_t i = 0; i < contents_.sites.size(); ++i) {
      if (!which(contents_.sites[i]) || !wants(i, end)) continue;
      writer_.mark_site(i, end);
      any = true;
    }
    if (any) writer_.commit();
  }

  // A hook's rows to their dataset; only those that are kept, and not those of windows that it holds.
  void take(const SiteView& view) {
    const std::ptrdiff_t found = find_site(view.site, view.linear, view.layer);
    if (found < 0) return;
    const auto site = static_cast<std::size_t>(found);
    if (view.window < writer_.site_windows(site)) return;
    ChunkWriter& to = writer_.site(site);
    if (kept_ == ctx_) {
      to.put(view.window * kept_ + view.row_begin, view.col_begin, view.rows, view.cols, view.data,
             view.stride);
      return advance(view.rows * view.cols);
    }
    std::vector<float> values;
    std::int64_t first = -1, rows = 0;
    for (std::int64_t r = 0; r < view.rows; ++r) {
      const std::int32_t kept = position_[static_cast<std::size_t>(view.row_begin + r)];
      if (kept < 0) continue;
      if (first < 0) first = kept;
      const float* row = view.data + r * view.stride;
      values.insert(values.end(), row, row + view.cols);
      ++rows;
    }
    if (rows == 0) return;
    to.put(view.window * kept_ + first, view.col_begin, rows, view.cols, values.data(), view.cols);
    advance(rows * view.cols);
  }

  const CaptureJob& job_;
  const CaptureContents& contents_;
  const Checkpoint& checkpoint_;
  CaptureWriter writer_;
  const std::int64_t windows_, ctx_, kept_;
  std::vector<std::int32_t> position_;  // [ctx]: index of a position among the kept rows, -1: not kept
  std::vector<std::vector<std::ptrdiff_t>> by_place_;  // [layer + 1][slot]: index of the site
};

}  // namespace

CaptureContents capture_contents(const Checkpoint& checkpoint, const CaptureSelection& selection) {
  CaptureContents contents;
  contents.config = checkpoint.config();
  contents.sites = capture_sites(checkpoint.config(), selection);
  for (const std::string& name : capture_tensors(checkpoint.config(), selection))
    contents.tensors.push_back(*checkpoint.find(name));
  return contents;
}

std::vector<std::int32_t> kept_rows(std::int64_t ctx, std::optional<std::int64_t> every,
                                    std::optional<std::int64_t> tokens) {
  if (every && tokens) fail_usage("--every", "give one of --every and --tokens");
  if (every && *every < 1) fail_usage("--every", "1 or more");
  if (tokens && (*tokens < 1 || *tokens > ctx))
    fail_usage("--tokens", fmt::format("1 to {}, the tokens of a window, not {}", ctx, *tokens));
  std::vector<std::int32_t> rows;
  const std::int64_t count = tokens ? *tokens : every ? (ctx + *every - 1) / *every : ctx;
  for (std::int64_t i = 0; i < count; ++i)
    rows.push_back(static_cast<std::int32_t>(every ? i * *every : i * ctx / count));
  return rows;
}

CaptureReport run_capture(const CaptureJob& job) {
  const bool begun = CaptureWriter::begun(job.path);
  if (begun && !job.resume)
    fail("cannot write capture", job.path.string(),
         "it exists (--resume goes on with it; remove it for a new one)");
  if (!begun) require_memory(job);  // bad input leaves no file behind
  return CaptureRun(job, begun ? CaptureWriter::resume(job.path, job.contents)
                               : CaptureWriter::create(job.path, job.contents))
      .run();
}

}  // namespace quantmap
