// `report` as one HTML file: the page of reports/page/ with its style, script, d3 and the data inlined. It
// loads nothing. The data are JSON in a script element that no browser runs: `<`, U+2028 and U+2029 are
// escaped, and the script writes what it shows as text, so nothing in the data becomes markup.
#pragma once

#include <cstdint>
#include <string>

#include "core/number.hpp"
#include "reports/report_data.hpp"
#include "reports/writers.hpp"

namespace quantmap {

// What the page draws. Layer errors are packed: of each scope, kind, module and metric an array of schemes ×
// layers in 16 bits a value (log_code), base64.
std::string report_json(const ReportData& data);
std::string report_html(const ReportData& data);
// For a pull request (md) or a terminal (table); csv: every field of the evaluations.
std::string report_text(const ReportData& data, OutputFormat format, int width);

// A value that is not negative in 16 bits, its logarithm to 1/1024 of an octave (0.04 %): 0 for 0, 65535 for
// undefined, else 1 + 1024 (log2 value + 32), within 1 to 65534.
std::uint16_t log_code(const Number& value);

}  // namespace quantmap
