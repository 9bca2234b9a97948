#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/common/FaissCompat.h"

namespace faiss_bits::gpu {

/// A faiss::IDSelector made ready for many searches: what it selects of the ids
/// 0 .. n - 1, on a GPU. It goes wherever FAISS takes an IDSelector, as
/// SearchParameters::sel of a GpuIndexBitsFlat above all, which then evaluates
/// nothing at a search.
///
/// sel      any selector, not null. FAISS's own (range, array, batch, bitmap,
///          not, all; and, or, xor where FAISS has them) are evaluated on the
///          GPU; of any other, is_member is asked once for every id, by the
///          calling thread. It is read here and not needed later: what changes
///          in it after that changes nothing
/// n        vectors of the indexes that it is for, 0 .. 2^37 - 2^11: searches
///          of a flat index that holds another number of vectors throw; to
///          inverted lists it is a set of ids, whatever they hold
/// device   the GPU of these indexes; -1: the current one
/// Memory   n / 8 bytes on the GPU and on the host; and on the GPU 4 bytes for
///          every id that is selected, where these are at most 3/4 of n < 2^31
/// Stream   waits until it is ready; any stream and resources may use it then.
///          To destroy it waits for the device
/// Errors   FaissException naming the argument, or a null pointer in a
///          selector; what is_member throws; and when memory is short
class DeviceSelector : public faiss::IDSelector {
   public:
    /// Evaluates sel for the ids 0 .. n - 1 and waits until that is done.
    DeviceSelector(const faiss::IDSelector* sel, idx_t n, int device = -1);

    ~DeviceSelector() override;

    DeviceSelector(const DeviceSelector&) = delete;
    DeviceSelector& operator=(const DeviceSelector&) = delete;

    /// On the host, for other indexes. Ids outside 0 .. n - 1 are no members.
    bool is_member(idx_t id) const override;

    /// The n that it was made for.
    idx_t numVectors() const {
        return n_;
    }

    /// Ids that are selected.
    idx_t numSelected() const {
        return numSelected_;
    }

    /// The GPU that it lies on.
    int device() const {
        return device_;
    }

    /// On the GPU: bit i % 32 of word i / 32 of id i, [(n + 31) / 32].
    const uint32_t* bits() const {
        return static_cast<const uint32_t*>(bits_.get());
    }

    /// On the GPU: the selected ids, ascending, [numSelected()]; null where
    /// these are more than 3/4 of n, or n is 2^31 or more.
    const int32_t* ids() const {
        return static_cast<const int32_t*>(ids_.get());
    }

   private:
    idx_t n_ = 0;
    idx_t numSelected_ = 0;
    int device_ = 0;
    std::vector<uint32_t> hostBits_;
    std::shared_ptr<void> bits_;
    std::shared_ptr<void> ids_;
};

} // namespace faiss_bits::gpu
