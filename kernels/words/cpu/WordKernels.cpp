// The kernels of words on the CPU, for every instruction set.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/words/cpu/WordKernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file again for each target.
#include <hwy/highway.h>

#include "kernels/words/cpu/GroupDistances-inl.h"
#include "kernels/words/cpu/TrieWalk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::words::cpu {
namespace HWY_NAMESPACE {

static WordKernels makeWordKernels() {
    WordKernels kernels;
    kernels.lanes16 = int(hn::Lanes(hn::ScalableTag<uint16_t>()));
    kernels.lanes32 = int(hn::Lanes(hn::ScalableTag<uint32_t>()));
    kernels.lanes64 = int(hn::Lanes(hn::ScalableTag<uint64_t>()));
    kernels.walk16 = &walkTrie<uint16_t>;
    kernels.walk32 = &walkTrie<uint32_t>;
    kernels.walk64 = &walkTrie<uint64_t>;
    kernels.distances32 = &groupDistances<uint32_t>;
    kernels.distances64 = &groupDistances<uint64_t>;
    kernels.survivors = &pivotSurvivors;
    return kernels;
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::words::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/TargetTable.h"
#include "kernels/cpu/Targets.h"

namespace faiss_bits::words::cpu {

HWY_EXPORT(makeWordKernels);

const WordKernels& wordKernels() {
    static const WordKernels kernels = [] {
        const int64_t target = faiss_bits::cpu::targetOf("");
        return FAISS_BITS_CALL_AT(makeWordKernels, target);
    }();
    return kernels;
}

} // namespace faiss_bits::words::cpu
#endif
