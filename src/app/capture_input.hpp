// A capture in place of a model and its text, for commands that look at the reference's tensors.
#pragma once

#include <string>

#include "app/text_input.hpp"
#include "capture/reader.hpp"

namespace quantmap {

// Refuses (usage) what a capture brings itself: --text, --token-ids, --ctx, --windows, --bos, --compute.
void refuse_text_options(const boost::program_options::variables_map& values);

// Its windows. Throws Error (input) where only some tokens of a window were kept and `whole_windows` asks for
// all of them.
TextInput captured_input(const Capture& capture, bool whole_windows);

// As describe_run: a run on a capture is one on the model and the text that it was taken from. `note`: what
// the capture does not give.
RunRecord describe_captured_run(const std::string& command, const std::string& command_line,
                                const CommonOptions& common, const Capture& capture, const TextInput& input,
                                const std::string& note);

}  // namespace quantmap
