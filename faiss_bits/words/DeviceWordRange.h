#pragma once

#include <vector>

#include "faiss_bits/common/FaissCompat.h"

namespace faiss_bits {

/// The results of a range search of words on the device, as rows of a sparse
/// matrix: of query i those from lims[i] to lims[i + 1] - 1, in ascending
/// labels. They lie in parts, one behind the other: mostly one, and several
/// where the search went through its queries in batches.
class DeviceWordRange {
   public:
    /// Some of the results, on the device.
    struct Part {
        idx_t size = 0;               ///< results
        int32_t* distances = nullptr; ///< [size]
        idx_t* labels = nullptr;      ///< [size]
    };

    DeviceWordRange() = default;
    virtual ~DeviceWordRange() = default;
    DeviceWordRange(const DeviceWordRange&) = delete;
    DeviceWordRange& operator=(const DeviceWordRange&) = delete;

    std::vector<idx_t> lims; ///< [queries + 1], on the host
    std::vector<Part> parts; ///< in their order

    /// Memory of the index's device for the next `size` >= 1 results, which
    /// nothing on the device reads or writes any more.
    virtual Part allocate(idx_t size) = 0;
};

} // namespace faiss_bits
