#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/common/Workspace.h"
#include "kernels/select/Select.h"

namespace faiss_bits {

/// What an algorithm brings to runSelect, which checks every argument first
/// and returns early for rows = 0.
struct SelectImplementation {
    const char* name;

    /// Why the algorithm cannot take the problem, or an empty string. Reads
    /// shape, types and which pointers are set. Host only.
    std::string (*refusal)(const SelectProblem& problem);

    /// Scratch bytes. Reads shape and types. Host only, no CUDA call.
    size_t (*workspaceBytes)(const SelectProblem& problem);

    /// Enqueues and returns. Takes every slice of the workspace before the
    /// first launch.
    void (*run)(
            const SelectProblem& problem,
            Workspace workspace,
            cudaStream_t stream);
};

/// selectWorkspaceBytes and runSelect with this implementation in place of the
/// one that the problem names: the same checks in the same order, and the same
/// errors.
size_t workspaceBytesOf(
        const SelectImplementation& implementation,
        const SelectProblem& problem);
void runImplementation(
        const SelectImplementation& implementation,
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

extern const SelectImplementation kBitsSelect;
extern const SelectImplementation kSampleThresholdSelect;
extern const SelectImplementation kBitsGlobalSelect;
extern const SelectImplementation kSampleSelect;
extern const SelectImplementation kSampleSelectTwoStage;
extern const SelectImplementation kRadixSelect;
extern const SelectImplementation kSortSelect;

} // namespace faiss_bits
