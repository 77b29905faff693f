#include "capture/writer.hpp"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <utility>

#include "capture/config_json.hpp"
#include "capture/page_journal.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"

namespace quantmap {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhat = "cannot write capture";

// Root attributes that a resumed capture must share.
std::vector<std::pair<std::string, std::string>> identity(const CaptureContents& contents) {
  const CaptureInfo& i = contents.info;
  return {{"model_sha256", i.model_sha256},
          {"tokenizer_sha256", i.tokenizer_sha256},
          {"text_sha256", i.text_sha256},
          {"token_ids_sha256", i.token_ids_sha256},
          {"window_ids_sha256", sha256_of_ids(contents.tokens)},
          {"rows_sha256", sha256_of_ids(contents.rows)},
          {"bos", i.bos},
          {"compute", compute_name(i.compute)},
          {"products", i.products},
          {"store", store_name(i.store)},
          {"selection", i.selection},
          {"version", i.version},
          {"git_revision", i.git_revision}};
}

Hdf5Handle creation_list(const DatasetShape& shape, int level) {
  Hdf5Handle list(H5Pcreate(H5P_DATASET_CREATE));
  const auto rows = static_cast<hsize_t>(shape.chunk.rows), cols = static_cast<hsize_t>(shape.chunk.cols);
  const auto heads = static_cast<hsize_t>(shape.rank == 3 ? shape.heads : 1);
  const hsize_t chunk[3] = {shape.rank == 1 ? cols : rows, shape.rank == 3 ? heads : cols, cols / heads};
  bool made = H5Pset_chunk(list.get(), shape.rank, chunk) >= 0 &&
              H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER) >= 0 &&
              H5Pset_obj_track_times(list.get(), false) >= 0;  // the same capture is the same file
  if (level > 0)
    made = made && H5Pset_shuffle(list.get()) >= 0 &&
           H5Pset_deflate(list.get(), static_cast<unsigned>(level)) >= 0;
  if (!made) fail(kWhat, "", "dataset layout: " + hdf5_reason());
  return list;
}

Hdf5Handle data_space(const DatasetShape& shape) {
  const auto rows = static_cast<hsize_t>(shape.rows), cols = static_cast<hsize_t>(shape.cols);
  const auto heads = static_cast<hsize_t>(shape.rank == 3 ? shape.heads : 1);
  const hsize_t size[3] = {shape.rank == 1 ? cols : rows, shape.rank == 3 ? heads : cols, cols / heads};
  return Hdf5Handle(H5Screate_simple(shape.rank, size, nullptr));
}

// 0 where the dataset has no filters.
int deflate_level(hid_t dataset) {
  const Hdf5Handle list(H5Dget_create_plist(dataset));
  unsigned flags = 0, value = 0;
  std::size_t values = 1;
  if (H5Pget_filter_by_id2(list.get(), H5Z_FILTER_DEFLATE, &flags, &values, &value, 0, nullptr, nullptr) < 0)
    return 0;
  return static_cast<int>(value);
}

}  // namespace

DatasetShape site_shape(const CaptureSite& site, std::int64_t windows, std::int64_t rows) {
  constexpr std::int64_t kRows = 128, kHeadRows = 16;  // of the tiles that bring them
  const bool head = site.layer < 0 && site.site == Site::linear_output;
  DatasetShape shape;
  shape.rank = site.heads > 0 ? 3 : 2;
  shape.rows = windows * rows;
  shape.cols = site.width;
  shape.heads = site.heads;
  shape.chunk = chunk_shape(rows, site.width, head ? kHeadRows : kRows, site.heads > 0);
  return shape;
}

DatasetShape tensor_shape(const TensorEntry& tensor) {
  constexpr std::int64_t kValues = 128 * 1024;
  DatasetShape shape;
  shape.rank = static_cast<int>(tensor.shape.size());
  shape.rows = shape.rank == 2 ? tensor.shape[0] : 1;
  shape.cols = tensor.shape.back();
  shape.chunk.cols = std::min(shape.cols, kValues);
  shape.chunk.rows = std::clamp<std::int64_t>(kValues / shape.chunk.cols, 1, shape.rows);
  return shape;
}

CaptureWriter::CaptureWriter(JournaledFile file, std::int64_t windows)
    : file_(std::make_unique<JournaledFile>(std::move(file))), windows_(windows) {}

bool CaptureWriter::begun(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return false;
  if (!fs::is_regular_file(path, ignored)) fail_input("bad capture", path.string(), "not a regular file");
  if (fs::file_size(path, ignored) > 0) return true;
  if (fs::exists(journal_path(path), ignored)) {
    const PageJournal recovered(path, false);
    if (recovered.size() > 0) return true;
  }
  fs::remove(path, ignored);
  return false;
}

CaptureWriter CaptureWriter::create(const fs::path& path, const CaptureContents& contents) {
  const Hdf5Lock lock;
  CaptureWriter writer(JournaledFile::create(path), contents.info.windows);
  writer.create_contents(contents);
  writer.open_contents(contents);
  writer.commit();
  return writer;
}

CaptureWriter CaptureWriter::resume(const fs::path& path, const CaptureContents& contents) {
  const Hdf5Lock lock;
  CaptureWriter writer(JournaledFile::open(path), contents.info.windows);
  writer.check_same(contents);
  writer.open_contents(contents);
  return writer;
}

void CaptureWriter::create_contents(const CaptureContents& contents) {
  const CaptureInfo& info = contents.info;
  const hid_t file = file_->id();
  const std::string& name = file_->name();
  const Hdf5Handle root(H5Gopen2(file, "/", H5P_DEFAULT));
  write_attribute(root.get(), "quantmap_schema", kCaptureSchema, name);
  write_attribute(root.get(), "complete", 0, name);
  for (const auto& [key, value] : identity(contents)) write_attribute(root.get(), key, value, name);
  write_attribute(root.get(), "model", info.model, name);
  write_attribute(root.get(), "model_type", info.model_type, name);
  write_attribute(root.get(), "text", info.text, name);
  write_attribute(root.get(), "command_line", info.command_line, name);
  write_attribute(root.get(), "created", info.created, name);
  write_attribute(root.get(), "config", write_config_json(contents.config), name);
  write_attribute(root.get(), "ctx", info.ctx, name);
  write_attribute(root.get(), "windows", info.windows, name);

  const Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(links.get(), 1);
  const auto check = [&](bool made, const std::string& what) {
    if (!made) fail(kWhat, name, what + ": " + file_->reason());
  };
  const auto integers = [&](const char* path, const std::vector<std::int32_t>& values, std::int64_t rows,
                            int rank) {
    const hsize_t size[2] = {
        static_cast<hsize_t>(rank == 1 ? static_cast<std::int64_t>(values.size()) : rows),
        static_cast<hsize_t>(rows > 0 ? static_cast<std::int64_t>(values.size()) / rows : 0)};
    const Hdf5Handle space(H5Screate_simple(rank, size, nullptr));
    const Hdf5Handle list(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_obj_track_times(list.get(), false);
    const Hdf5Handle dataset(
        H5Dcreate2(file, path, H5T_STD_I32LE, space.get(), links.get(), list.get(), H5P_DEFAULT));
    check(bool(dataset), path);
    if (!values.empty())
      check(H5Dwrite(dataset.get(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0,
            path);
    write_attribute(dataset.get(), "complete", 1, name);
  };
  integers("/tokens", contents.tokens, info.windows, 2);
  integers("/rows", contents.rows, 1, 1);

  const Hdf5Handle type = store_type(info.store);
  const auto floats = [&](const std::string& path, const DatasetShape& shape, int level, bool site) {
    const Hdf5Handle space = data_space(shape);
    const Hdf5Handle list = creation_list(shape, level);
    const Hdf5Handle dataset(
        H5Dcreate2(file, path.c_str(), type.get(), space.get(), links.get(), list.get(), H5P_DEFAULT));
    check(bool(dataset), path);
    write_attribute(dataset.get(), "complete", 0, name);
    write_attribute(dataset.get(), "overflows", 0, name);
    if (site) write_attribute(dataset.get(), "windows", 0, name);
  };
  const auto rows = static_cast<std::int64_t>(contents.rows.size());
  for (const TensorEntry& tensor : contents.tensors)
    floats(tensor_dataset(tensor.name), tensor_shape(tensor), contents.tensor_level, false);
  for (const CaptureSite& site : contents.sites) {
    const std::string path = site_dataset(site.names[0]);
    floats(path, site_shape(site, info.windows, rows), contents.site_level, true);
    for (std::size_t i = 1; i < site.names.size(); ++i)
      check(H5Lcreate_hard(file, path.c_str(), file, site_dataset(site.names[i]).c_str(), links.get(),
                           H5P_DEFAULT) >= 0,
            site.names[i]);
  }
}

void CaptureWriter::check_same(const CaptureContents& contents) const {
  const std::string& name = file_->name();
  const Hdf5Handle root(H5Gopen2(file_->id(), "/", H5P_DEFAULT));
  std::int64_t schema = 0;
  if (!read_attribute(root.get(), "quantmap_schema", schema))
    fail_input("bad capture", name, "not made by quantmap", "attribute quantmap_schema", "none");
  if (schema != kCaptureSchema)
    fail_input("bad capture", name, "attribute quantmap_schema", std::to_string(kCaptureSchema),
               std::to_string(schema));
  for (const auto& [key, wanted] : identity(contents)) {
    std::string found;
    if (!read_attribute(root.get(), key, found)) fail_input("bad capture", name, "no attribute " + key);
    if (found != wanted)
      fail_input("cannot resume capture", name, "it was begun with another " + key, quoted(wanted),
                 quoted(found));
  }
}

void CaptureWriter::open_contents(const CaptureContents& contents) {
  const auto rows = static_cast<std::int64_t>(contents.rows.size());
  for (const TensorEntry& tensor : contents.tensors)
    tensors_.push_back(open_dataset(tensor_dataset(tensor.name), tensor_shape(tensor), contents.info.store));
  for (const CaptureSite& site : contents.sites)
    sites_.push_back(
        open_dataset(site_dataset(site.names[0]), site_shape(site, windows_, rows), contents.info.store));
}

CaptureWriter::Dataset CaptureWriter::open_dataset(const std::string& path, const DatasetShape& shape,
                                                   StoreType store) const {
  const std::string& name = file_->name();
  Hdf5Handle dataset(H5Dopen2(file_->id(), path.c_str(), H5P_DEFAULT));
  if (!dataset) fail_input("bad capture", name, "no dataset " + path);
  std::int64_t complete = 0, windows = 0, overflows = 0;
  if (!read_attribute(dataset.get(), "complete", complete) ||
      !read_attribute(dataset.get(), "overflows", overflows))
    fail_input("bad capture", name, "dataset " + path + " has no marks");
  if (!read_attribute(dataset.get(), "windows", windows)) windows = complete;
  const int level = deflate_level(dataset.get());
  Dataset made;
  made.windows = windows;
  made.writer = std::make_unique<ChunkWriter>(*file_, std::move(dataset), shape, store, level, overflows);
  return made;
}

void CaptureWriter::mark(Dataset& dataset, std::int64_t windows, bool complete) {
  if (dataset.writer->open_chunks() > 0)
    fail("capture", file_->name(), "a dataset was marked before it was whole");
  const Hdf5Lock lock;
  dataset.windows = windows;
  write_attribute(dataset.writer->id(), "overflows", dataset.writer->overflows(), file_->name());
  if (complete) write_attribute(dataset.writer->id(), "complete", 1, file_->name());
}

void CaptureWriter::mark_site(std::size_t site, std::int64_t windows) {
  const Hdf5Lock lock;
  mark(sites_[site], windows, windows == windows_);
  write_attribute(sites_[site].writer->id(), "windows", windows, file_->name());
}

void CaptureWriter::mark_tensor(std::size_t tensor) { mark(tensors_[tensor], 1, true); }

void CaptureWriter::mark_file() {
  const Hdf5Lock lock;
  const Hdf5Handle root(H5Gopen2(file_->id(), "/", H5P_DEFAULT));
  write_attribute(root.get(), "complete", 1, file_->name());
}

std::int64_t CaptureWriter::complete() const {
  return std::count_if(sites_.begin(), sites_.end(),
                       [&](const Dataset& d) { return d.windows == windows_; }) +
         std::count_if(tensors_.begin(), tensors_.end(), [](const Dataset& d) { return d.windows > 0; });
}

CaptureWriter::Overflows CaptureWriter::overflows() const {
  Overflows sum;
  for (const auto* datasets : {&sites_, &tensors_})
    for (const Dataset& dataset : *datasets) {
      sum.values += dataset.writer->overflows();
      sum.datasets += dataset.writer->overflows() > 0 ? 1 : 0;
    }
  return sum;
}

}  // namespace quantmap
