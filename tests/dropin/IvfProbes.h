#pragma once

#include <vector>

#include "tests/ivf/IvfHarness.h"

namespace faiss_bits::test {

/// The lists that the quantizer of FAISS's own index gives each query.
template <class Index>
std::vector<std::vector<int64_t>> probesOf(
        const Index& index,
        const IvfData& data,
        int nprobe) {
    const size_t count = size_t(data.c.q) * nprobe;
    std::vector<float> distances(count);
    std::vector<int64_t> labels(count);
    index.quantizer->search(
            data.c.q,
            data.queries.data(),
            nprobe,
            distances.data(),
            labels.data());
    std::vector<std::vector<int64_t>> lists;
    for (int64_t i = 0; i < data.c.q; ++i) {
        const auto* row = labels.data() + i * nprobe;
        lists.emplace_back(row, row + nprobe);
    }
    return lists;
}

} // namespace faiss_bits::test
