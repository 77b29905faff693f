#include "capture/hdf5.hpp"

#include <hdf5.h>

#include "core/error.hpp"

namespace quantmap {
namespace {

Hdf5Handle small_float(std::size_t exponent_bits, std::size_t mantissa_bits, std::size_t bias) {
  Hdf5Handle type(H5Tcopy(H5T_IEEE_F32LE));
  // The fields first: they must lie inside the size that the type is cut to.
  const bool made = type &&
                    H5Tset_fields(type.get(), 15, mantissa_bits, exponent_bits, 0, mantissa_bits) >= 0 &&
                    H5Tset_ebias(type.get(), bias) >= 0 && H5Tset_size(type.get(), 2) >= 0;
  if (!made) fail("HDF5", "", "cannot make a 16-bit float type: " + hdf5_reason());
  return type;
}

Hdf5Handle string_type() {
  Hdf5Handle type(H5Tcopy(H5T_C_S1));
  if (!type || H5Tset_size(type.get(), H5T_VARIABLE) < 0 || H5Tset_cset(type.get(), H5T_CSET_UTF8) < 0)
    fail("HDF5", "", "cannot make a string type: " + hdf5_reason());
  return type;
}

void write_value(hid_t object, const std::string& name, hid_t file_type, hid_t memory_type, const void* value,
                 const std::string& file) {
  const bool exists = H5Aexists(object, name.c_str()) > 0;
  const Hdf5Handle space(H5Screate(H5S_SCALAR));
  const Hdf5Handle attribute(
      exists ? H5Aopen(object, name.c_str(), H5P_DEFAULT)
             : H5Acreate2(object, name.c_str(), file_type, space.get(), H5P_DEFAULT, H5P_DEFAULT));
  if (!attribute || H5Awrite(attribute.get(), memory_type, value) < 0)
    fail("cannot write capture", file, "attribute " + name + ": " + hdf5_reason());
}

// An attribute that holds one value.
Hdf5Handle open_scalar(hid_t object, const std::string& name) {
  if (H5Aexists(object, name.c_str()) <= 0) return {};
  Hdf5Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT));
  if (!attribute) return {};
  const Hdf5Handle space(H5Aget_space(attribute.get()));
  if (H5Sget_simple_extent_npoints(space.get()) != 1) return {};
  return attribute;
}

}  // namespace

std::recursive_mutex& Hdf5Lock::mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

Hdf5Lock::Hdf5Lock() : lock_(mutex()) {
  // Kept by thread where the library was built for threads, so it is set each time.
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

void Hdf5Handle::reset() {
  if (id_ < 0) return;
  const Hdf5Lock lock;
  H5Idec_ref(id_);
  id_ = H5I_INVALID_HID;
}

std::string hdf5_reason() {
  std::string reason;
  const auto innermost = [](unsigned depth, const H5E_error2_t* error, void* out) -> herr_t {
    if (depth == 0 && error->desc) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &reason);
  return reason.empty() ? "HDF5 gave no reason" : reason;
}

const char* store_name(StoreType type) {
  switch (type) {
    case StoreType::f32:
      return "f32";
    case StoreType::bf16:
      return "bf16";
    case StoreType::f16:
      break;
  }
  return "f16";
}

StoreType parse_store(std::string_view name) {
  for (const StoreType type : {StoreType::f32, StoreType::bf16, StoreType::f16})
    if (name == store_name(type)) return type;
  fail_usage("--store", "unknown type " + quoted(name) + " (f32, bf16 or f16)");
}

Hdf5Handle store_type(StoreType type) {
  switch (type) {
    case StoreType::f32:
      return Hdf5Handle(H5Tcopy(H5T_IEEE_F32LE));
    case StoreType::bf16:
      return small_float(8, 7, 127);
    case StoreType::f16:
      break;
  }
  return small_float(5, 10, 15);
}

void write_attribute(hid_t object, const std::string& name, std::int64_t value, const std::string& file) {
  write_value(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value, file);
}

void write_attribute(hid_t object, const std::string& name, const std::string& value,
                     const std::string& file) {
  const Hdf5Handle type = string_type();
  const char* text = value.c_str();
  write_value(object, name, type.get(), type.get(), static_cast<const void*>(&text), file);
}

bool read_attribute(hid_t object, const std::string& name, std::int64_t& value) {
  const Hdf5Handle attribute = open_scalar(object, name);
  if (!attribute) return false;
  const Hdf5Handle type(H5Aget_type(attribute.get()));
  return H5Tget_class(type.get()) == H5T_INTEGER && H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) >= 0;
}

bool read_attribute(hid_t object, const std::string& name, std::string& value) {
  const Hdf5Handle attribute = open_scalar(object, name);
  if (!attribute) return false;
  const Hdf5Handle type(H5Aget_type(attribute.get()));
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) <= 0) return false;
  const Hdf5Handle memory_type = string_type();
  char* text = nullptr;
  if (H5Aread(attribute.get(), memory_type.get(), static_cast<void*>(&text)) < 0) return false;
  value = text ? text : "";
  H5free_memory(text);
  return true;
}

}  // namespace quantmap
