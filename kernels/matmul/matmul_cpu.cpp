#include <omp.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <shared_mutex>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "formats/bf16_array.hpp"
#include "kernels/matmul/matmul.hpp"

namespace quantmap {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

// Every use of oneDNN asks for the engine first. OpenMP's number of threads belongs to the thread that sets
// it; oneDNN chooses blockings and cuts sums by it: one, where primitives are made and where they run.
dnnl::engine& engine() {
  thread_local const bool alone = (omp_set_num_threads(1), true);
  static_cast<void>(alone);
  static dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

// A primitive and its descriptors; shared by all threads (oneDNN primitives are, with a user scratchpad).
struct Product {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
  std::size_t scratch = 0;
};

memory::data_type data_type(OperandType type) {
  return type == OperandType::f32 ? memory::data_type::f32 : memory::data_type::bf16;
}

std::unique_ptr<Product> make_product(const memory::desc& x, const memory::desc& w, const memory::desc& y) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  auto product = std::make_unique<Product>();
  product->description = dnnl::matmul::primitive_desc(dnnl::matmul::desc(x, w, y), attributes, engine());
  product->primitive = dnnl::matmul(product->description);
  product->scratch = product->description.scratchpad_desc().get_size();
  return product;
}

// Products by shape. `layout` tells packed right-hand sides of one layout apart from plain ones.
using Key = std::tuple<OperandType, std::int64_t, std::int64_t, std::int64_t, std::int64_t, int>;
enum Layout { packed = 0, plain_transposed = 1, plain = 2 };

class ProductCache {
 public:
  template <typename Make>
  const Product& get(const Key& key, Make&& make) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = products_.find(key); found != products_.end()) return *found->second;
    }
    const std::unique_lock lock(mutex_);
    if (const auto found = products_.find(key); found != products_.end()) return *found->second;
    return *products_.emplace(key, make()).first->second;  // make() may throw: nothing is kept then
  }

 private:
  std::shared_mutex mutex_;
  std::map<Key, std::unique_ptr<Product>> products_;
};

ProductCache& cache() {
  static ProductCache instance;
  return instance;
}

void execute(const Product& product, const void* x, const void* w, float* y) {
  thread_local dnnl::stream stream(engine());
  thread_local std::vector<std::byte> scratch;
  if (scratch.size() < product.scratch + 64) scratch.resize(product.scratch + 64);
  void* aligned = scratch.data();
  std::size_t room = scratch.size();
  std::align(64, product.scratch, aligned, room);
  const auto& d = product.description;
  product.primitive.execute(stream,
                            {{DNNL_ARG_SRC, memory(d.src_desc(), engine(), const_cast<void*>(x))},
                             {DNNL_ARG_WEIGHTS, memory(d.weights_desc(), engine(), const_cast<void*>(w))},
                             {DNNL_ARG_DST, memory(d.dst_desc(), engine(), y)},
                             {DNNL_ARG_SCRATCHPAD, memory(d.scratchpad_desc(), engine(), aligned)}});
  stream.wait();
}

std::vector<float> widened(const void* data, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  array_from_bf16(static_cast<const std::uint16_t*>(data), count, values.data());
  return values;
}

}  // namespace

bool has_bf16_products() {
  static const bool has = [] {
    try {
      const memory::desc x({16, 64}, memory::data_type::bf16, Tag::ab),
          w({64, 16}, memory::data_type::bf16, Tag::ba), y({16, 16}, memory::data_type::f32, Tag::ab);
      const std::string name = make_product(x, w, y)->description.impl_info_str();
      // A reference implementation would be exact too, but far too slow.
      return name.find("ref") == std::string::npos;
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return has;
}

struct PackedMatrix::State {
  OperandType type = OperandType::f32;  // of x, as the caller gives it
  OperandType held = OperandType::f32;  // of the packed copy: f32 where BF16 products are missing
  std::int64_t n = 0, k = 0;
  memory::desc layout;
  std::unique_ptr<std::byte, void (*)(void*)> data{nullptr, std::free};
  std::int64_t bytes = 0;
};

PackedMatrix::PackedMatrix() = default;
PackedMatrix::PackedMatrix(PackedMatrix&&) noexcept = default;
PackedMatrix& PackedMatrix::operator=(PackedMatrix&&) noexcept = default;
PackedMatrix::~PackedMatrix() = default;

PackedMatrix::PackedMatrix(OperandType type, const void* w, std::int64_t n, std::int64_t k, std::int64_t rows)
    : state_(std::make_unique<State>()) {
  state_->type = type;
  state_->held = type == OperandType::bf16 && !has_bf16_products() ? OperandType::f32 : type;
  state_->n = n;
  state_->k = k;
  std::vector<float> wide;
  if (state_->held != type) {
    wide = widened(w, n * k);
    w = wide.data();
  }
  const auto t = data_type(state_->held);
  const dnnl::primitive_attr attributes;
  const dnnl::matmul::primitive_desc chosen(
      dnnl::matmul::desc(memory::desc({rows, k}, t, Tag::ab), memory::desc({k, n}, t, Tag::any),
                         memory::desc({rows, n}, memory::data_type::f32, Tag::ab)),
      attributes, engine());
  state_->layout = chosen.weights_desc();
  state_->bytes = static_cast<std::int64_t>(state_->layout.get_size());
  const std::size_t room = (static_cast<std::size_t>(state_->bytes) + 63) / 64 * 64;
  state_->data.reset(static_cast<std::byte*>(std::aligned_alloc(64, room)));
  if (!state_->data) throw std::bad_alloc();
  memory from(memory::desc({k, n}, t, Tag::ba), engine(), const_cast<void*>(w));
  memory to(state_->layout, engine(), state_->data.get());
  dnnl::stream stream(engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
}

OperandType PackedMatrix::type() const { return state_->type; }
std::int64_t PackedMatrix::n() const { return state_->n; }
std::int64_t PackedMatrix::k() const { return state_->k; }
std::int64_t PackedMatrix::bytes() const { return state_ ? state_->bytes : 0; }

std::int64_t packed_bytes_bound(OperandType type, std::int64_t n, std::int64_t k) {
  // oneDNN pads n to its widest block (64) and k to pairs.
  const OperandType held = type == OperandType::bf16 && !has_bf16_products() ? OperandType::f32 : type;
  return (n + 63) / 64 * 64 * ((k + 15) / 16 * 16) * operand_bytes(held) + 4096;
}

void PackedMatrix::multiply(const void* x, std::int64_t m, float* y) const {
  const State& s = *state_;
  std::vector<float> wide;
  if (s.held != s.type) {
    wide = widened(x, m * s.k);
    x = wide.data();
  }
  const Product& product = cache().get(Key{s.held, m, s.k, s.n, 0, Layout::packed}, [&] {
    return make_product(memory::desc({m, s.k}, data_type(s.held), Tag::ab), s.layout,
                        memory::desc({m, s.n}, memory::data_type::f32, Tag::ab));
  });
  if (product.description.weights_desc() != s.layout)
    fail("matrix product", "", "two packed layouts for one shape");
  execute(product, x, s.data.get(), y);
}

void multiply_once(OperandType type, const void* x, std::int64_t m, std::int64_t k, const void* w,
                   std::int64_t w_stride, bool transposed, std::int64_t n, float* y) {
  std::vector<float> wide_x, wide_w;
  if (type == OperandType::bf16 && !has_bf16_products()) {
    wide_x = widened(x, m * k);
    wide_w = widened(w, ((transposed ? n : k) - 1) * w_stride + (transposed ? k : n));
    x = wide_x.data();
    w = wide_w.data();
    type = OperandType::f32;
  }
  const Layout layout = transposed ? plain_transposed : plain;
  const Product& product = cache().get(Key{type, m, k, n, w_stride, layout}, [&] {
    const memory::dims strides = transposed ? memory::dims{1, w_stride} : memory::dims{w_stride, 1};
    return make_product(memory::desc({m, k}, data_type(type), Tag::ab),
                        memory::desc({k, n}, data_type(type), strides),
                        memory::desc({m, n}, memory::data_type::f32, Tag::ab));
  });
  execute(product, x, w, y);
}

}  // namespace quantmap
