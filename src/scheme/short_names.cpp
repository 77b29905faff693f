// The table of short names of product.md: those of compressed-tensors' presets where it has one.
#include <array>

#include "scheme/scheme.hpp"

namespace quantmap {
namespace {

constexpr std::array kShortNames{
    ShortName{"BF16", "w=bf16,a=bf16,kv=bf16"},
    ShortName{"W8A16", "w=int8:channel"},
    ShortName{"W4A16", "w=int4:g128"},
    ShortName{"W4A16_G32", "w=int4:g32"},
    ShortName{"W8A8", "w=int8:channel,a=int8:token"},
    ShortName{"W4A8", "w=int4:g128,a=int8:token"},
    ShortName{"W4A16_ASYM", "w=int4:g128:asym"},
    ShortName{"FP8", "w=fp8_e4m3:tensor,a=fp8_e4m3:tensor:static"},
    ShortName{"FP8_DYNAMIC", "w=fp8_e4m3:channel,a=fp8_e4m3:token"},
    ShortName{"FP8_BLOCK", "w=fp8_e4m3:b128x128,a=fp8_e4m3:g128"},
    ShortName{"NVFP4", "w=nvfp4,a=nvfp4"},
    ShortName{"NVFP4A16", "w=nvfp4"},
    ShortName{"MXFP4", "w=mxfp4,a=mxfp4"},
    ShortName{"MXFP4A16", "w=mxfp4"},
    ShortName{"MXFP8", "w=mxfp8_e4m3,a=mxfp8_e4m3"},
    ShortName{"NF4", "w=nf4"},
    ShortName{"Q8_0", "w=q8_0"},
    ShortName{"Q6_K", "w=q6_k"},
    ShortName{"Q5_K", "w=q5_k"},
    ShortName{"Q5_1", "w=q5_1"},
    ShortName{"Q5_0", "w=q5_0"},
    ShortName{"Q4_K", "w=q4_k"},
    ShortName{"Q4_1", "w=q4_1"},
    ShortName{"Q4_0", "w=q4_0"},
    ShortName{"IQ4_NL", "w=iq4_nl"},
    ShortName{"IQ4_XS", "w=iq4_xs"},
    ShortName{"Q3_K", "w=q3_k"},
    ShortName{"Q2_K", "w=q2_k"},
    ShortName{"Q2_0", "w=q2_0"},
    ShortName{"TQ2_0", "w=tq2_0"},
    ShortName{"TQ1_0", "w=tq1_0"},
    ShortName{"Q1_0", "w=q1_0"},
};

}  // namespace

std::span<const ShortName> short_names() { return kShortNames; }

}  // namespace quantmap
