#pragma once

#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {

/// Runs a selection of rows x cols floats that needs no scratch, without ids
/// given, and holds every row against the oracle.
///
/// p   shape, k, order, device, algorithm; keys and results are set here
inline void expectSelectOfFloats(
        SelectProblem p,
        const std::vector<float>& keys) {
    const DeviceBuffer<float> deviceKeys(keys);
    DeviceBuffer<float> outKeys(p.rows * p.k, 0xCD);
    DeviceBuffer<int64_t> outIds(p.rows * p.k, 0xCD);
    p.keys = deviceKeys.data();
    p.outKeys = outKeys.data();
    p.outIds = outIds.data();
    ASSERT_EQ(selectWorkspaceBytes(p), 0u);
    runSelect(p, {}, nullptr);
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
    const std::vector<float> found = outKeys.download();
    const std::vector<int64_t> ids = outIds.download();
    for (int64_t r = 0; r < p.rows; ++r) {
        const RowOfKeys row{keys.data() + r * p.cols, p.cols};
        ASSERT_TRUE(isTopKOfRow(
                row,
                topKOfRow(row.keys, p.cols, nullptr, 0, p.k, p.largest),
                found.data() + r * p.k,
                ids.data() + r * p.k,
                p.k,
                0))
                << "row " << r;
    }
}

} // namespace faiss_bits::test
