#include "research/queues/QueueProblem.h"

#include "kernels/common/Error.h"
#include "kernels/select/SelectChecks.h"
#include "research/queues/QueueSelect.h"

namespace faiss_bits {

std::string queueRefusal(const SelectProblem& p) {
    if (p.k > kMaxQueueK) {
        return formatMessage("k = %d is above %d", p.k, kMaxQueueK);
    }
    if (p.hasIds()) {
        return "it takes no given ids, and ids is set";
    }
    if (p.hasColBias() || p.hasRowBias()) {
        return "it takes no biases, and colBias is set";
    }
    return "";
}

void checkQueueShape(const SelectProblem& p) {
    checkSelectShape(p);
    BITS_THROW_IF_NOT_FMT(
            p.k <= kMaxQueueK, "k = %d is above %d", p.k, kMaxQueueK);
}

void checkQueuePointers(const SelectProblem& p) {
    const std::string refusal = queueRefusal(p);
    BITS_THROW_IF_NOT_FMT(
            refusal.empty(), "the queue methods: %s", refusal.c_str());
    checkSelectPointers(p);
}

} // namespace faiss_bits
