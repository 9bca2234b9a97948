// Selection from a row of stored distances by a 4-ary heap, behind a vector
// comparison with its root: variants 5 and 6.

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/Emit-inl.h"
#include "kernels/cpu/Heap.h"
#include "kernels/cpu/KernelTypes.h"

#if defined(FAISS_BITS_KERNELS_CPU_HEAPSCAN_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_HEAPSCAN_INL_H_
#undef FAISS_BITS_KERNELS_CPU_HEAPSCAN_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_HEAPSCAN_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void scanRow(
        const T* keys,
        idx_t count,
        idx_t firstId,
        idx_t k,
        OrderedEntry<T>* heap,
        idx_t* heapCount) {
    const hn::ScalableTag<T> d;
    constexpr int kLanes = lanesOf<T>();
    idx_t size = *heapCount;
    for (idx_t i = 0; i < count; i += kLanes) {
        const idx_t end = std::min<idx_t>(i + kLanes, count);
        // A root of NaN lets every number in.
        if (size == k && end - i == kLanes) {
            const T root = heap[0].key();
            const auto mask = hn::Lt(hn::LoadU(d, keys + i), hn::Set(d, root));
            if (root == root && hn::AllFalse(d, mask)) {
                continue;
            }
        }
        for (idx_t j = i; j < end; ++j) {
            if (size == k && !(keys[j] < heap[0].key()) &&
                heap[0].key() == heap[0].key()) {
                continue;
            }
            offerToHeap<4>(
                    heap,
                    size,
                    k,
                    OrderedEntry<T>(keys[j], CandidateId<T>(firstId + j)));
        }
    }
    *heapCount = size;
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
