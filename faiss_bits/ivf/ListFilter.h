#pragma once

#include <optional>

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/ivf/IdsOfLists.h"

/// Selectors of vectors of inverted lists. Not part of the API.
namespace faiss_bits::gpu::detail {

/// That of a selector which kernels can look ids up in themselves, without
/// anything that is made for it: a DeviceSelector, a range, all, and not of
/// those.
///
/// Errors  as ListFilter
std::optional<ListIdTest> listIdTestOf(
        const GpuContext& context,
        const faiss::IDSelector& selector);

/// What one selector selects of an index's lists, as bits on the device: a
/// vector whose id the selector has as a member. Where the index keeps no ids,
/// neither on the device nor on the host (INDICES_IVF), they are
/// list << 32 | place.
///
/// FAISS's own selectors are evaluated on the device; with INDICES_CPU the ids
/// are sent there. Of any other, is_member is asked for every vector, by this
/// thread, and what it throws goes through.
///
/// Stream   enqueues. It waits for ids that selectors of the host are asked
///          for, and where arrays of a selector are pinned or managed
/// Capture  only what reads no host memory: FaissException for all else
/// Memory   temporary memory: 4 bytes for 32 vectors and 4 a list, or where no
///          list is much longer than others up to four times that; while it is
///          evaluated, those of the bits again for every second operand of and,
///          or, xor, and up to 112 MiB for ids
/// Errors   FaissException for a null pointer inside, and for a DeviceSelector
///          of another device
class ListFilter {
   public:
    /// lists: of the index; their ids are those that the selector knows.
    ListFilter(
            const GpuContext& context,
            const faiss::IDSelector& selector,
            const IvfLists& lists,
            const faiss::gpu::IVFBase& index);

    ListFilter(const ListFilter&) = delete;
    ListFilter& operator=(const ListFilter&) = delete;

    /// The ids that it was asked for.
    IdsOfLists& ids() {
        return ids_;
    }

    /// The lists with their bits.
    const IvfLists& lists() const {
        return lists_;
    }

    /// Its bits, to be changed.
    uint32_t* bits() {
        return static_cast<uint32_t*>(bits_.get());
    }

   private:
    IdsOfLists ids_;
    IvfLists lists_;
    TemporaryMemory bits_;
};

} // namespace faiss_bits::gpu::detail
