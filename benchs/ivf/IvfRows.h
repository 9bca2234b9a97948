#pragma once

#include <cstdint>
#include <string>

#include "benchs/common/Report.h"
#include "benchs/ivf/IvfIndexes.h"

namespace faiss_bits::bench {

/// Products of 16 bits on an H200, dense: what frac_peak is a part of.
constexpr double kIvfPeakFlops = 790e12;

/// One search.
struct IvfCell {
    int nprobe = 0;
    int64_t q = 0;
    int k = 0;
    int64_t pairs = 0;   ///< of a query and a vector of a list that it probes
    int64_t vectors = 0; ///< of the lists that any query probes
};

/// What rows of all benches of bench_ivf begin with.
inline Row ivfRow(
        const std::string& bench,
        const std::string& method,
        const IvfShape& shape,
        const std::string& data,
        int64_t n) {
    Row row;
    row.text("bench", bench)
            .text("method", method)
            .text("index", shape.kind.name)
            .text("data", data)
            .integer("n", n)
            .integer("d", shape.d)
            .integer("nlist", shape.nlist);
    return row;
}

/// And how they go on.
inline Row& addIvfTimes(
        Row& row,
        const IvfShape& shape,
        const IvfCell& cell,
        double ms) {
    const double flops = 2.0 * double(cell.pairs) * shape.d;
    return row.integer("nprobe", cell.nprobe)
            .integer("q", cell.q)
            .integer("k", cell.k)
            .integer("pairs", cell.pairs)
            .integer("vectors", cell.vectors)
            .number("ms", ms)
            .number("frac_peak", flops / (ms * 1e-3 * kIvfPeakFlops));
}

} // namespace faiss_bits::bench
