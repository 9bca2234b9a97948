#pragma once

// For the files that are compiled once per instruction set, after highway.h.

/// Calls the function that HWY_EXPORT named `FUNCTION`, as compiled for the one
/// given target. HWY_DYNAMIC_DISPATCH takes the best target of the process;
/// a choice of another must not change what other threads run.
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
#define FAISS_BITS_CALL_AT(FUNCTION, TARGET) \
    ((void)(TARGET), HWY_STATIC_DISPATCH(FUNCTION)())
#else
#define FAISS_BITS_CALL_AT(FUNCTION, TARGET) \
    ((*HWY_DISPATCH_TABLE(FUNCTION)[faiss_bits::cpu::targetIndex(TARGET)])())

namespace faiss_bits::cpu {

static inline size_t targetIndex(int64_t target) {
    hwy::ChosenTarget chosen;
    chosen.Update(target);
    return chosen.GetIndex();
}

} // namespace faiss_bits::cpu
#endif
