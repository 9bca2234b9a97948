#include "faiss_bits/ivf/ListsBefore.h"

#include <typeinfo>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/ivf/IvfIndexSearch.h"
#include "faiss_bits/ivf/ListStorage.h"
#include "faiss_bits/ivf/OurIvf.h"

namespace faiss_bits::gpu::detail {

/// What our classes keep to themselves.
struct IvfAccess {
    template <class Index>
    static faiss::gpu::IVFBase* baseOf(Index& index) {
        return index.baseIndex_.get();
    }
    template <class Index>
    static IvfLists listsOf(const Index& index) {
        return index.ivfIndex_().lists;
    }
};

ListsBefore::ListsBefore(faiss::gpu::GpuIndex& index) {
    const bool isOurs = asOurIvf(index, [&](auto& ours) {
        base_ = IvfAccess::baseOf(ours);
        FAISS_THROW_IF_NOT_MSG(base_, "the index is not trained");
        index_ = &ours;
        lists_ = IvfAccess::listsOf(ours);
    });
    FAISS_THROW_IF_NOT_FMT(
            isOurs,
            "a %s is none of our inverted lists",
            faiss::demangle_cpp_symbol(typeid(index).name()).c_str());
    lengths_ = lengthsOf(*base_);
    ntotal_ = index.ntotal;
}

idx_t ListsBefore::numAdded() const {
    idx_t added = 0;
    const auto now = lengthsOf(*base_);
    for (size_t l = 0; l < now.size(); ++l) {
        added += now[l] - lengths_[l];
    }
    return added;
}

void ListsBefore::restore(cudaStream_t stream) const {
    restoreLists(*base_, lists_, lengths_, stream);
    index_->ntotal = ntotal_;
}

} // namespace faiss_bits::gpu::detail
