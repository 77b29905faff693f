#include "formats/registry.hpp"

#include "formats/element.hpp"
#include "formats/fp16.hpp"

namespace quantmap {
namespace {

using enum FormatKind;

constexpr std::string_view kE8m0Blocks = "E8M0, blocks of 32";
constexpr std::string_view kMicroscaling = "OCP Microscaling v1.0; formats.md 3";

constexpr Format kFormats[] = {
    {"bf16", cast, 16, 0, 0, 0x1.FEp127F, "none", "upper half of IEEE binary32; formats.md 1"},
    {"fp16", cast, 16, 0, 0, Fp16::kMax, "none", "IEEE 754 binary16; formats.md 1"},
    {"int8", integer, 8, 0, 0, 127, "by granularity",
     "compressed-tensors, torchao, SmoothQuant; formats.md 2", Element::integer},
    {"int6", integer, 6, 0, 0, 31, "by granularity", "as int8; formats.md 2", Element::integer},
    {"int5", integer, 5, 0, 0, 15, "by granularity", "as int8; formats.md 2", Element::integer},
    {"int4", integer, 4, 0, 0, 7, "by granularity", "compressed-tensors, GPTQ, torchao; formats.md 2",
     Element::integer},
    {"int3", integer, 3, 0, 0, 3, "by granularity", "as int4; formats.md 2", Element::integer},
    {"int2", integer, 2, 0, 0, 1, "by granularity", "as int4; formats.md 2", Element::integer},
    {"fp8_e4m3", minifloat, 8, 0, 0, Fp8E4M3::kMax, "by granularity", "OCP OFP8 E4M3FN; formats.md 1, 7",
     Element::e4m3},
    {"fp8_e5m2", minifloat, 8, 0, 0, Fp8E5M2::kMax, "by granularity", "OCP OFP8 E5M2; formats.md 1, 7",
     Element::e5m2},
    {"fp6_e2m3", minifloat, 6, 0, 0, Fp6E2M3::kMax, "by granularity", "OCP Microscaling's E2M3; formats.md 1",
     Element::e2m3},
    {"fp6_e3m2", minifloat, 6, 0, 0, Fp6E3M2::kMax, "by granularity", "OCP Microscaling's E3M2; formats.md 1",
     Element::e3m2},
    {"fp4_e2m1", minifloat, 4, 0, 0, Fp4E2M1::kMax, "by granularity", "OCP Microscaling's E2M1; formats.md 1",
     Element::e2m1},
    {"mxfp8_e4m3", mx, 8, 32, 8, Fp8E4M3::kMax, kE8m0Blocks, kMicroscaling, Element::e4m3},
    {"mxfp8_e5m2", mx, 8, 32, 8, Fp8E5M2::kMax, kE8m0Blocks, kMicroscaling, Element::e5m2},
    {"mxfp6_e2m3", mx, 6, 32, 8, Fp6E2M3::kMax, kE8m0Blocks, kMicroscaling, Element::e2m3},
    {"mxfp6_e3m2", mx, 6, 32, 8, Fp6E3M2::kMax, kE8m0Blocks, kMicroscaling, Element::e3m2},
    {"mxfp4", mx, 4, 32, 8, Fp4E2M1::kMax, kE8m0Blocks, kMicroscaling, Element::e2m1},
    {"mxint8", mx, 8, 32, 8, MxInt8::kMax, kE8m0Blocks, kMicroscaling, Element::mx_int8},
    {"nvfp4", nvfp4, 4, 16, 8, Fp4E2M1::kMax, "E4M3, blocks of 16; FP32, tensor",
     "NVIDIA ModelOpt's order; formats.md 4", Element::e2m1},
    {"nf4", lookup, 4, 64, 32, 1, "FP32, blocks of 64", "bitsandbytes 0.50.2; formats.md 5", Element::nf4},
    {"bnb_fp4", lookup, 4, 64, 32, 1, "FP32, blocks of 64", "bitsandbytes 0.50.2; formats.md 5",
     Element::bnb_fp4},
    {"q8_0", ggml, 8, 32, 16, 127, "FP16, blocks of 32", "llama.cpp; formats.md 6"},
    {"q6_k", ggml, 6, 256, 144, 0, "8 bits, blocks of 16; FP16, of 256", "llama.cpp; formats.md 6"},
    {"q5_k", ggml, 5, 256, 128, 0, "6 bits and minimum, blocks of 32; FP16, of 256",
     "llama.cpp; formats.md 6"},
    {"q5_1", ggml, 5, 32, 32, 0, "FP16 and minimum, blocks of 32", "llama.cpp; formats.md 6"},
    {"q5_0", ggml, 5, 32, 16, 0, "FP16, blocks of 32", "llama.cpp; formats.md 6"},
    {"q4_k", ggml, 4, 256, 128, 0, "6 bits and minimum, blocks of 32; FP16, of 256",
     "llama.cpp; formats.md 6"},
    {"q4_1", ggml, 4, 32, 32, 0, "FP16 and minimum, blocks of 32", "llama.cpp; formats.md 6"},
    {"q4_0", ggml, 4, 32, 16, 0, "FP16, blocks of 32", "llama.cpp; formats.md 6"},
    {"iq4_nl", ggml, 4, 32, 16, 0, "FP16, blocks of 32", "llama.cpp; formats.md 6"},
    {"iq4_xs", ggml, 4, 256, 64, 0, "6 bits, blocks of 32; FP16, of 256", "llama.cpp; formats.md 6"},
    {"q3_k", ggml, 3, 256, 112, 0, "6 bits, blocks of 16; FP16, of 256", "llama.cpp; formats.md 6"},
    {"q2_k", ggml, 2, 256, 160, 0, "4 bits and minimum, blocks of 16; FP16, of 256",
     "llama.cpp; formats.md 6"},
    {"q2_0", ggml, 2, 64, 16, 0, "FP16, blocks of 64", "llama.cpp; formats.md 6"},
    {"tq2_0", ggml, 2, 256, 16, 0, "FP16, blocks of 256", "llama.cpp; formats.md 6"},
    // Five codes of three values in a byte.
    {"tq1_0", ggml, 2, 256, 16, 0, "FP16, blocks of 256", "llama.cpp; formats.md 6"},
    {"q1_0", ggml, 1, 128, 16, 0, "FP16, blocks of 128", "llama.cpp; formats.md 6"},
    {"ggml_mxfp4", ggml, 4, 32, 8, Fp4E2M1::kMax, "E8M0 by log2f, blocks of 32",
     "llama.cpp's own rule, not mxfp4; formats.md 6"},
    {"ggml_nvfp4", ggml, 4, 64, 32, Fp4E2M1::kMax, "E4M3, blocks of 16; no tensor scale",
     "llama.cpp's own rule, not nvfp4; formats.md 6"},
};

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format* find_format(std::string_view id) {
  for (const Format& format : kFormats) {
    if (format.id == id) return &format;
  }
  return nullptr;
}

}  // namespace quantmap
