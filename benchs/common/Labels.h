#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "benchs/common/DeviceData.h"

/// Labels that searches have found, and how far two of them agree.
namespace faiss_bits::bench {

/// The first `count` labels, when the device has done all that was enqueued:
/// searches of device arrays return before they are done, on streams that the
/// default one does not wait for.
inline std::vector<int64_t> downloadLabels(
        const DeviceArray<int64_t>& labels,
        size_t count) {
    std::vector<int64_t> found(count);
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
    BITS_CUDA_CHECK(cudaMemcpy(
            found.data(),
            labels.data(),
            count * sizeof(int64_t),
            cudaMemcpyDeviceToHost));
    return found;
}

/// Labels [queries, k] that both have for the same query, as a share: places
/// swap, and the last ones change, where distances differ by less than
/// rounding.
inline double shareInBoth(
        std::vector<int64_t> ours,
        std::vector<int64_t> theirs,
        int k) {
    std::vector<int64_t> both;
    for (size_t at = 0; at < ours.size(); at += k) {
        const auto a = ours.begin() + at;
        const auto b = theirs.begin() + at;
        std::sort(a, a + k);
        std::sort(b, b + k);
        std::set_intersection(a, a + k, b, b + k, std::back_inserter(both));
    }
    return double(both.size()) / double(ours.size());
}

} // namespace faiss_bits::bench
