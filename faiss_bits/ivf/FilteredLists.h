#pragma once

#include <memory>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/ivf/ListFilter.h"
#include "kernels/ivf/IvfKnn.h"
#include "kernels/ivf/IvfSelectedCopy.h"

/// Searches of a part of the vectors of inverted lists. Not part of the API.
namespace faiss_bits::gpu::detail {

/// The lists that a whole call searches: those of an index, with bits of what a
/// selector selects, or a copy of that alone where it pays
/// (kernels/ivf/IvfSelectedCopy.h has the rule) and fits half of the scratch.
/// Or with a test of ids, of few queries: then a search that is not direct
/// makes bits for itself.
///
/// Stream  waits for the device where it counts what is selected; see
///         ListFilter for the rest
/// Memory  ListFilter's, and of the copy 4 d + 8 bytes for each selected vector
///         and for up to 32 more a list, which are left out where that is too
///         much, and 24 a list; bytes() in all. Temporary memory
class FilteredLists {
   public:
    /// Without a selector (nullptr): the lists as they are.
    ///
    /// problem   a search of all queries: its shape, and its lists
    /// withIds   of the results: Places where the search returns those
    /// anyLists  a query may name a list more than once
    /// mayTest   a search that takes a test of ids (IvfLists::idTest), too
    FilteredLists(
            const GpuContext& context,
            const faiss::IDSelector* selector,
            const faiss::gpu::IVFBase& index,
            const IvfKnnProblem& problem,
            ListIds idsOfResults,
            bool anyLists,
            bool mayTest,
            size_t maxBytes);

    FilteredLists(const FilteredLists&) = delete;
    FilteredLists& operator=(const FilteredLists&) = delete;

    /// The search of all queries, in these lists.
    const IvfKnnProblem& problem() const {
        return found_;
    }

    /// Temporary memory that it holds, or bits take in place of a test.
    size_t bytes() const {
        return bytes_;
    }

   private:
    void count_(const GpuContext& context, size_t maxBytes, bool anyLists);

    IvfKnnProblem found_;
    size_t bytes_ = 0;
    // In the order in which they are taken.
    std::unique_ptr<ListFilter> filter_;
    TemporaryMemory counts_;
    TemporaryMemory copied_;
};

} // namespace faiss_bits::gpu::detail
