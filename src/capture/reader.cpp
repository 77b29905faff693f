#include "capture/reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <unordered_map>

#include "capture/config_json.hpp"
#include "capture/layout.hpp"
#include "capture/page_journal.hpp"
#include "core/error.hpp"
#include "formats/bf16_array.hpp"
#include "formats/fp16.hpp"

namespace quantmap {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhat = "bad capture";
constexpr char kSignature[] = "\x89HDF\r\n\x1a\n";

std::vector<std::string> link_names(hid_t group) {
  H5G_info_t info{};
  std::vector<std::string> names;
  if (H5Gget_info(group, &info) < 0) return names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const ssize_t length =
        H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, nullptr, 0, H5P_DEFAULT);
    if (length < 0) return names;
    std::string name(static_cast<std::size_t>(length), '\0');
    H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(), name.size() + 1, H5P_DEFAULT);
    names.push_back(std::move(name));
  }
  return names;
}

struct Dataset {
  Hdf5Handle id;
  std::vector<std::int64_t> shape;
  StoreType type = StoreType::f32;
  std::int64_t overflows = 0;
  std::int64_t width() const {  // values of an entry along the first dimension
    std::int64_t values = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) values *= shape[i];
    return values;
  }
};

// HDF5 would call it a lock with errno 11.
void refuse_if_written(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_input("cannot open capture", path, std::strerror(errno));
  const bool written = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  if (written) fail_input("cannot open capture", path, "another process is writing it");
}

}  // namespace

struct Capture::State {
  fs::path path;
  CaptureInfo info;
  ModelConfig config;
  Hdf5Handle file;
  std::vector<std::int32_t> tokens, rows;
  std::vector<std::string> sites;
  std::unordered_map<std::string, Dataset> site_data;
  std::vector<TensorEntry> tensors;
  std::unordered_map<std::string_view, std::size_t> tensor_index;  // keys point into `tensors`
  std::vector<Dataset> tensor_data;

  ~State() {
    const Hdf5Lock lock;
    site_data.clear();
    tensor_data.clear();
    file = Hdf5Handle();
  }
  void open();
  void read_info();
  void read_sites(const std::string& group, std::initializer_list<const char*> sides);
  void read_tensors();
  void require_complete();
  Hdf5Handle open_object(const std::string& name) const;
  Dataset open_dataset(const std::string& name) const;
  std::vector<std::int32_t> read_integers(const std::string& name, std::int64_t count) const;
  std::string text(hid_t root, const std::string& name) const;
  std::int64_t number(hid_t root, const std::string& name) const;
  void read(const Dataset& dataset, const std::string& name, std::int64_t begin, std::int64_t count,
            float* out) const;
  const Dataset& site(std::string_view name) const;
  [[noreturn]] void refuse(std::string_view detail) const { fail_input(kWhat, path.string(), detail); }
};

std::string Capture::State::text(hid_t root, const std::string& name) const {
  std::string value;
  if (!read_attribute(root, name, value)) refuse("no attribute " + name);
  return value;
}

std::int64_t Capture::State::number(hid_t root, const std::string& name) const {
  std::int64_t value = 0;
  if (!read_attribute(root, name, value)) refuse("no attribute " + name);
  return value;
}

void Capture::State::open() {
  const std::string name = path.string();
  std::error_code ignored;
  if (!fs::exists(path, ignored)) fail_input("cannot open capture", name, "no such file");
  if (!Capture::is_hdf5(path)) refuse("not an HDF5 file");
  if (fs::exists(journal_path(path), ignored))
    fail_input(kWhat, name, "it was left in the middle of a commit (capture --resume finishes it)");
  refuse_if_written(name);
  const Hdf5Lock lock;
  file = Hdf5Handle(H5Fopen(name.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (!file) fail_input(kWhat, name, "it does not open", "an HDF5 file, whole", hdf5_reason());
  read_info();
  require_complete();
  read_sites("/activations", {"input", "output"});
  read_sites("/kv", {"key", "value"});
  read_tensors();
}

void Capture::State::read_info() {
  const Hdf5Handle root(H5Gopen2(file.get(), "/", H5P_DEFAULT));
  std::int64_t schema = 0;
  if (!read_attribute(root.get(), "quantmap_schema", schema))
    fail_input(kWhat, path.string(), "not made by quantmap", "attribute quantmap_schema", "none");
  if (schema > kCaptureSchema)
    fail_input(kWhat, path.string(), "made by a newer quantmap",
               fmt::format("schema {} or less", kCaptureSchema), std::to_string(schema));
  if (schema < 1) refuse(fmt::format("schema {}", schema));
  info.model = text(root.get(), "model");
  info.model_type = text(root.get(), "model_type");
  info.model_sha256 = text(root.get(), "model_sha256");
  info.tokenizer_sha256 = text(root.get(), "tokenizer_sha256");
  info.text = text(root.get(), "text");
  info.text_sha256 = text(root.get(), "text_sha256");
  info.token_ids_sha256 = text(root.get(), "token_ids_sha256");
  info.products = text(root.get(), "products");
  info.bos = text(root.get(), "bos");
  info.command_line = text(root.get(), "command_line");
  info.version = text(root.get(), "version");
  info.git_revision = text(root.get(), "git_revision");
  info.created = text(root.get(), "created");
  info.selection = text(root.get(), "selection");
  info.ctx = number(root.get(), "ctx");
  info.windows = number(root.get(), "windows");
  const std::string compute = text(root.get(), "compute"), store = text(root.get(), "store");
  bool known = false;
  for (const Compute c : {Compute::bf16, Compute::f32, Compute::bf16_serve})
    if (compute == compute_name(c)) {
      info.compute = c;
      known = true;
    }
  if (!known) refuse("attribute compute is " + quoted(compute));
  known = false;
  for (const StoreType type : {StoreType::f32, StoreType::bf16, StoreType::f16})
    if (store == store_name(type)) {
      info.store = type;
      known = true;
    }
  if (!known) refuse("attribute store is " + quoted(store));
  config = parse_config_json(text(root.get(), "config"), path.string());
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (info.ctx < 0 || info.windows < 0 || info.ctx > kMost || info.windows > kMost ||
      (info.ctx > 0 && info.windows > kMost / info.ctx))
    refuse(fmt::format("{} windows of {} tokens", info.windows, info.ctx));
  tokens = read_integers("/tokens", info.windows * info.ctx);
  rows = read_integers("/rows", -1);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] < (i > 0 ? rows[i - 1] + 1 : 0) || rows[i] >= info.ctx)
      refuse("dataset /rows is not ascending");
}

void Capture::State::require_complete() {
  const Hdf5Handle root(H5Gopen2(file.get(), "/", H5P_DEFAULT));
  if (number(root.get(), "complete") == 1) return;
  refuse("unfinished (capture --resume with the same arguments finishes it)");
}

Hdf5Handle Capture::State::open_object(const std::string& name) const {
  Hdf5Handle dataset(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT));
  if (!dataset) refuse("no dataset " + name);
  return dataset;
}

Dataset Capture::State::open_dataset(const std::string& name) const {
  Dataset dataset;
  dataset.id = open_object(name);
  const Hdf5Handle space(H5Dget_space(dataset.id.get())), type(H5Dget_type(dataset.id.get()));
  hsize_t size[H5S_MAX_RANK] = {};
  const int rank = H5Sget_simple_extent_dims(space.get(), size, nullptr);
  for (int i = 0; i < rank; ++i) dataset.shape.push_back(static_cast<std::int64_t>(size[i]));
  if (rank < 1 || rank > 3) refuse("dataset " + name + " has an unknown shape");
  bool known = false;
  for (const StoreType store : {StoreType::f32, StoreType::bf16, StoreType::f16})
    if (H5Tequal(type.get(), store_type(store).get()) > 0) {
      dataset.type = store;
      known = true;
    }
  if (!known) refuse("dataset " + name + " has an unknown type");
  std::int64_t complete = 0;
  if (!read_attribute(dataset.id.get(), "complete", complete) || complete != 1)
    refuse("dataset " + name + " is unfinished (capture --resume finishes it)");
  if (!read_attribute(dataset.id.get(), "overflows", dataset.overflows))
    refuse("dataset " + name + " has no count of overflows");
  return dataset;
}

std::vector<std::int32_t> Capture::State::read_integers(const std::string& name, std::int64_t count) const {
  const Hdf5Handle dataset = open_object(name);
  const Hdf5Handle space(H5Dget_space(dataset.get())), type(H5Dget_type(dataset.get()));
  const std::int64_t found = H5Sget_simple_extent_npoints(space.get());
  if (found < 0 || found > info.windows * info.ctx || (count >= 0 && found != count) ||
      H5Tget_class(type.get()) != H5T_INTEGER)
    refuse("dataset " + name + " does not fit ctx and windows");
  std::vector<std::int32_t> values(static_cast<std::size_t>(found));
  if (found > 0 && H5Dread(dataset.get(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
    refuse("dataset " + name + " does not read: " + hdf5_reason());
  return values;
}

void Capture::State::read_sites(const std::string& group, std::initializer_list<const char*> sides) {
  if (H5Lexists(file.get(), group.c_str(), H5P_DEFAULT) <= 0) return;
  const Hdf5Handle modules(H5Gopen2(file.get(), group.c_str(), H5P_DEFAULT));
  for (const std::string& module : link_names(modules.get()))
    for (const char* side : sides) {
      const std::string name = fmt::format("{}/{}/{}", group, module, side);
      if (H5Lexists(file.get(), name.c_str(), H5P_DEFAULT) <= 0) continue;
      Dataset dataset = open_dataset(name);
      if (dataset.shape.size() < 2 ||
          dataset.shape[0] != info.windows * static_cast<std::int64_t>(rows.size()))
        refuse("dataset " + name + " does not fit windows and rows");
      sites.push_back(fmt::format("{} {}", module, side));
      site_data.emplace(sites.back(), std::move(dataset));
    }
}

void Capture::State::read_tensors() {
  if (H5Lexists(file.get(), "/weights", H5P_DEFAULT) <= 0) return;
  const Hdf5Handle group(H5Gopen2(file.get(), "/weights", H5P_DEFAULT));
  constexpr const char* kTypes[] = {"F32", "BF16", "F16"};
  for (const std::string& name : link_names(group.get())) {
    Dataset dataset = open_dataset(tensor_dataset(name));
    if (dataset.shape.size() > 2) refuse("tensor " + quoted(name) + " has an unknown shape");
    TensorEntry entry{name, kTypes[static_cast<std::size_t>(dataset.type)], dataset.shape, 0};
    entry.bytes = store_bytes(dataset.type) * dataset.shape[0] * dataset.width();
    tensors.push_back(std::move(entry));
    tensor_data.push_back(std::move(dataset));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) tensor_index.emplace(tensors[i].name, i);
}

// Entries [begin, begin + count) along the first dimension. Values are read as they are stored and widened
// here: HDF5's own conversion of a custom type takes each value apart.
void Capture::State::read(const Dataset& dataset, const std::string& name, std::int64_t begin,
                          std::int64_t count, float* out) const {
  if (begin < 0 || count < 0 || begin + count > dataset.shape[0])
    fail("cannot read capture", path.string(),
         fmt::format("{}: rows {} to {} of {}", name, begin, begin + count, dataset.shape[0]));
  if (count == 0) return;
  const std::int64_t values = count * dataset.width();
  std::vector<std::uint16_t> codes;
  void* to = out;
  if (dataset.type != StoreType::f32) {
    codes.resize(static_cast<std::size_t>(values));
    to = codes.data();
  }
  {
    const Hdf5Lock lock;
    const Hdf5Handle space(H5Dget_space(dataset.id.get()));
    hsize_t from[3] = {static_cast<hsize_t>(begin), 0, 0}, size[3] = {static_cast<hsize_t>(count), 1, 1};
    for (std::size_t i = 1; i < dataset.shape.size(); ++i) size[i] = static_cast<hsize_t>(dataset.shape[i]);
    const Hdf5Handle memory(H5Screate_simple(static_cast<int>(dataset.shape.size()), size, nullptr));
    const Hdf5Handle type = store_type(dataset.type);
    if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, from, nullptr, size, nullptr) < 0 ||
        H5Dread(dataset.id.get(), type.get(), memory.get(), space.get(), H5P_DEFAULT, to) < 0)
      refuse(fmt::format("{} does not read: {}", name, hdf5_reason()));
  }
  if (dataset.type == StoreType::bf16) array_from_bf16(codes.data(), values, out);
  if (dataset.type == StoreType::f16)
    for (std::int64_t i = 0; i < values; ++i) out[i] = float_from_fp16(codes[static_cast<std::size_t>(i)]);
}

const Dataset& Capture::State::site(std::string_view name) const {
  const auto found = site_data.find(std::string(name));
  if (found == site_data.end()) refuse("it does not hold site " + quoted(name));
  return found->second;
}

Capture::Capture(std::unique_ptr<State> state) : state_(std::move(state)) {}
Capture::Capture(Capture&&) noexcept = default;
Capture& Capture::operator=(Capture&&) noexcept = default;
Capture::~Capture() = default;

Capture Capture::open(const fs::path& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->open();
  return Capture(std::move(state));
}

bool Capture::is_hdf5(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  char head[sizeof kSignature - 1] = {};
  file.read(head, sizeof head);
  return file && std::equal(head, head + sizeof head, kSignature);
}

const fs::path& Capture::path() const { return state_->path; }
const CaptureInfo& Capture::info() const { return state_->info; }
const ModelConfig& Capture::config() const { return state_->config; }

std::span<const std::int32_t> Capture::tokens(std::int64_t window) const {
  const CaptureInfo& i = state_->info;
  if (window < 0 || window >= i.windows)
    fail("cannot read capture", state_->path.string(), fmt::format("window {} of {}", window, i.windows));
  return std::span(state_->tokens)
      .subspan(static_cast<std::size_t>(window * i.ctx), static_cast<std::size_t>(i.ctx));
}

std::span<const std::int32_t> Capture::rows() const { return state_->rows; }
bool Capture::keeps_all_rows() const {
  return static_cast<std::int64_t>(state_->rows.size()) == state_->info.ctx;
}
std::span<const std::string> Capture::sites() const { return state_->sites; }
bool Capture::has(std::string_view site) const { return state_->site_data.contains(std::string(site)); }
std::int64_t Capture::width(std::string_view site) const { return state_->site(site).width(); }
std::int64_t Capture::overflows(std::string_view site) const { return state_->site(site).overflows; }

void Capture::read_rows(std::string_view site, std::int64_t window, std::int64_t row_begin,
                        std::int64_t row_end, float* out) const {
  const Dataset& dataset = state_->site(site);
  const auto kept = static_cast<std::int64_t>(state_->rows.size());
  if (window < 0 || window >= state_->info.windows || row_begin < 0 || row_end < row_begin || row_end > kept)
    fail("cannot read capture", state_->path.string(),
         fmt::format("{}: rows {} to {} of window {}", site, row_begin, row_end, window));
  state_->read(dataset, std::string(site), window * kept + row_begin, row_end - row_begin, out);
}

std::span<const TensorEntry> Capture::tensors() const { return state_->tensors; }

const TensorEntry* Capture::find(std::string_view name) const {
  const auto found = state_->tensor_index.find(name);
  return found == state_->tensor_index.end() ? nullptr : &state_->tensors[found->second];
}

void Capture::read(std::string_view name, std::int64_t row_begin, std::int64_t row_end, float* out) const {
  const auto found = state_->tensor_index.find(name);
  if (found == state_->tensor_index.end()) state_->refuse("it does not hold tensor " + quoted(name));
  const Dataset& dataset = state_->tensor_data[found->second];
  if (dataset.shape.size() == 2)
    return state_->read(dataset, std::string(name), row_begin, row_end - row_begin, out);
  if (row_begin == 0 && row_end == 1)
    return state_->read(dataset, std::string(name), 0, dataset.shape[0], out);
  if (row_begin != row_end)
    fail("cannot read capture", state_->path.string(),
         fmt::format("{}: rows {} to {} of 1", name, row_begin, row_end));
}

}  // namespace quantmap
