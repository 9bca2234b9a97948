#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/common/FaissCompat.h"

namespace faiss_bits::gpu {

class DeviceSelector;

/// What a faiss::IDSelector selects of the ids 0 .. n - 1, as the device is
/// told of it. Host only. Not part of the API.
namespace detail {

struct SelectorTree {
    enum class Kind {
        Range,    ///< first .. end - 1
        Ids,      ///< a list
        Bytes,    ///< bit i % 8 of byte i / 8; bits behind the bytes are 0
        Prepared, ///< a DeviceSelector
        Not,      ///< of left
        And,      ///< of left and right, as the next two
        Or,
        Xor,
    };

    Kind kind = Kind::Range;

    /// Bounds of how many are selected.
    idx_t least = 0;
    idx_t most = 0;

    idx_t first = 0;
    idx_t end = 0;

    /// Of the selector, which may be gone after the call, or `ownIds`.
    const idx_t* ids = nullptr;
    idx_t numIds = 0;
    std::vector<idx_t> ownIds;

    /// Of the selector, or `ownBytes`; on the host.
    const uint8_t* bytes = nullptr;
    size_t numBytes = 0;
    std::vector<uint8_t> ownBytes;

    const DeviceSelector* prepared = nullptr;

    std::unique_ptr<SelectorTree> left;
    std::unique_ptr<SelectorTree> right;
};

/// Reads a selector for an index of n vectors on `device`. FAISS's own are
/// taken as what they are; of any other, is_member is asked for every id, by
/// this thread, and what it throws goes through.
///
/// Errors  FaissException for a null pointer inside, and for a DeviceSelector
/// of
///         another n or device, naming it
/// Cost    nothing an id, save for bitmaps (n / 8 bytes are counted), batches
///         (their set is copied) and selectors that are not FAISS's
SelectorTree readSelector(
        const faiss::IDSelector& selector,
        idx_t n,
        int device);

} // namespace detail
} // namespace faiss_bits::gpu
