#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "kernels/common/Workspace.h"
#include "kernels/select/Select.h"

namespace faiss_bits {

/// How an algorithm goes about problems of one shape.
class SelectFamilyPlan {
   public:
    virtual ~SelectFamilyPlan() = default;

    virtual size_t workspaceBytes() const = 0;

    /// Enqueues and returns. Takes every slice of the workspace before the
    /// first launch.
    virtual void run(
            const SelectProblem& problem,
            Workspace workspace,
            cudaStream_t stream) const = 0;

    virtual std::string toString() const = 0;
};

/// Of a Family that has a Plan with toString(), and plan(problem),
/// workspaceBytes(problem, plan), run(problem, plan, workspace, stream).
template <class Family>
class SelectFamilyPlanOf final : public SelectFamilyPlan {
   public:
    explicit SelectFamilyPlanOf(const SelectProblem& shape)
            : plan_(Family::plan(shape)),
              workspaceBytes_(Family::workspaceBytes(shape, plan_)) {}

    static std::shared_ptr<const SelectFamilyPlan> make(
            const SelectProblem& shape) {
        return std::make_shared<SelectFamilyPlanOf>(shape);
    }

    size_t workspaceBytes() const override {
        return workspaceBytes_;
    }

    void run(
            const SelectProblem& problem,
            Workspace workspace,
            cudaStream_t stream) const override {
        Family::run(problem, plan_, workspace, stream);
    }

    std::string toString() const override {
        return plan_.toString();
    }

   private:
    typename Family::Plan plan_;
    size_t workspaceBytes_;
};

/// What an algorithm brings to runSelect, which checks every argument first
/// and returns early for rows = 0.
struct SelectImplementation {
    const char* name;

    /// Why the algorithm cannot take the problem, or an empty string. Reads
    /// shape, types and which pointers are set. Host only.
    std::string (*refusal)(const SelectProblem& problem);

    /// Scratch bytes and run of an algorithm that has no plan to keep. Read
    /// shape and types; host only, no CUDA call; enqueue and return.
    size_t (*workspaceBytes)(const SelectProblem& problem);
    void (*run)(
            const SelectProblem& problem,
            Workspace workspace,
            cudaStream_t stream);

    /// Else: its plan, from shape and types. Host only, no CUDA call.
    std::shared_ptr<const SelectFamilyPlan> (*plan)(
            const SelectProblem& shape) = nullptr;
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

extern const SelectImplementation kShortRowsSelect;
extern const SelectImplementation kBitsSelect;
extern const SelectImplementation kSampleThresholdSelect;
extern const SelectImplementation kBitsGlobalSelect;
extern const SelectImplementation kSampleSelect;
extern const SelectImplementation kSampleSelectTwoStage;
extern const SelectImplementation kRadixSelect;
extern const SelectImplementation kSortSelect;

} // namespace faiss_bits
