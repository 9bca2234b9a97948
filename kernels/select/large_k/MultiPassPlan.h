#pragma once

#include <string>

#include "kernels/select/Select.h"

namespace faiss_bits {

enum class MultiPassKind { SampleOneStage, SampleTwoStage, Radix };

/// How a multi-pass selection runs. Made from shape and types.
struct MultiPassPlan {
    idx_t batch = 0;             // rows at a time
    uint32_t splits = 1;         // blocks of a row
    uint32_t buckets = 0;        // of a pass
    int passes = 0;              // at most; what is left then is for one block
    uint32_t tiles = 0;          // of a row, for the matches of two stages
    uint32_t capacities[2] = {}; // candidates that the buffers of a row hold
    bool sortsAll = false;       // k >= cols: the rest is not used

    std::string toString() const;
};

MultiPassPlan planMultiPass(const SelectProblem& problem, MultiPassKind kind);

/// Every column sorted (SortSelect.cpp says how): `Sort`, and what all do for
/// k >= cols. Not sorted and k >= cols: no scratch.
size_t sortAllWorkspaceBytes(const SelectProblem& problem);
void runSortAll(
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

/// Rows at a time, all batches alike, so that one takes about 1 GiB.
idx_t rowsPerBatch(idx_t rows, size_t bytesPerRow);

} // namespace faiss_bits
