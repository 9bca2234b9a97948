#include "kernels/common/Error.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/select/SelectImplementation.h"
#include "kernels/select/SelectTable.h"

namespace faiss_bits {

namespace {

struct Algorithm {
    SelectAlgorithm algorithm;
    const SelectImplementation& implementation;
};

const Algorithm kAlgorithms[] = {
        {SelectAlgorithm::Bits, kBitsSelect},
        {SelectAlgorithm::SampleThreshold, kSampleThresholdSelect},
        {SelectAlgorithm::BitsGlobal, kBitsGlobalSelect},
        {SelectAlgorithm::SampleSelect, kSampleSelect},
        {SelectAlgorithm::SampleSelectTwoStage, kSampleSelectTwoStage},
        {SelectAlgorithm::RadixSelect, kRadixSelect},
        {SelectAlgorithm::Sort, kSortSelect}};

const SelectImplementation* implementationOf(SelectAlgorithm algorithm) {
    for (const Algorithm& one : kAlgorithms) {
        if (one.algorithm == algorithm) {
            return &one.implementation;
        }
    }
    return nullptr;
}

/// The first row of the table that fits and whose algorithm takes the problem.
SelectAlgorithm tabled(const SelectProblem& p) {
    const auto takes = [&](SelectAlgorithm algorithm) {
        return implementationOf(algorithm)->refusal(p).empty();
    };
    if (const SelectTableRow* row = rowFor(kSelectTable, p, takes)) {
        return row->algorithm;
    }
    return p.k <= kMaxSelectK ? SelectAlgorithm::Bits
                              : SelectAlgorithm::RadixSelect;
}

/// Checks the algorithm and the shape, not whether the one takes the other.
SelectAlgorithm chosen(const SelectProblem& p) {
    BITS_THROW_IF_NOT_FMT(
            p.algorithm == SelectAlgorithm::Auto ||
                    implementationOf(p.algorithm),
            "algorithm = %d is no SelectAlgorithm",
            int(p.algorithm));
    checkSelectShape(p);
    return p.algorithm == SelectAlgorithm::Auto ? tabled(p) : p.algorithm;
}

/// Throws unless the implementation takes the problem.
void checkTaken(const SelectImplementation& one, const SelectProblem& p) {
    const std::string reason = one.refusal(p);
    BITS_THROW_IF_NOT_FMT(
            reason.empty(),
            "algorithm = %s cannot take this problem: %s",
            one.name,
            reason.c_str());
}

/// Empty places come last, which a result in any order does not promise.
SelectProblem withOrder(SelectProblem problem) {
    problem.sorted = problem.sorted || problem.dropNan;
    return problem;
}

/// Of an algorithm that makes its plan in every run.
class NoPlan final : public SelectFamilyPlan {
   public:
    NoPlan(const SelectProblem& shape, const SelectImplementation& one)
            : one_(one), workspaceBytes_(one.workspaceBytes(shape)) {}

    size_t workspaceBytes() const override {
        return workspaceBytes_;
    }
    void run(
            const SelectProblem& problem,
            Workspace workspace,
            cudaStream_t stream) const override {
        one_.run(problem, workspace, stream);
    }
    std::string toString() const override {
        return "planned in the run";
    }

   private:
    const SelectImplementation& one_;
    size_t workspaceBytes_;
};

/// Nothing for no rows. Throws unless the implementation takes the problem.
std::shared_ptr<const SelectFamilyPlan> planOf(
        const SelectImplementation& one,
        const SelectProblem& ordered) {
    checkTaken(one, ordered);
    if (ordered.rows == 0) {
        return nullptr;
    }
    if (one.plan) {
        return one.plan(ordered);
    }
    return std::make_shared<NoPlan>(ordered, one);
}

void checkSameShape(const SelectProblem& planned, const SelectProblem& p) {
    const auto same = [](const char* name, long long one, long long other) {
        BITS_THROW_IF_NOT_FMT(
                one == other,
                "problem.%s = %lld, but it was planned for %lld",
                name,
                other,
                one);
    };
    same("rows", planned.rows, p.rows);
    same("cols", planned.cols, p.cols);
    same("k", planned.k, p.k);
    same("keyType", int(planned.keyType), int(p.keyType));
    same("sorted", planned.sorted, p.sorted);
    same("hasIds", planned.hasIds(), p.hasIds());
    same("hasColBias", planned.hasColBias(), p.hasColBias());
}

} // namespace

const std::vector<SelectAlgorithm>& selectAlgorithms() {
    static const std::vector<SelectAlgorithm> all = [] {
        std::vector<SelectAlgorithm> list;
        for (const Algorithm& one : kAlgorithms) {
            list.push_back(one.algorithm);
        }
        return list;
    }();
    return all;
}

const char* nameOf(SelectAlgorithm algorithm) {
    if (algorithm == SelectAlgorithm::Auto) {
        return "auto";
    }
    const SelectImplementation* one = implementationOf(algorithm);
    return one ? one->name : "?";
}

SelectAlgorithm selectAlgorithmOf(const std::string& name) {
    std::string names = "auto";
    if (name == names) {
        return SelectAlgorithm::Auto;
    }
    for (const Algorithm& one : kAlgorithms) {
        if (name == one.implementation.name) {
            return one.algorithm;
        }
        names += std::string(", ") + one.implementation.name;
    }
    throw Error(formatMessage(
            "algorithm = '%s' is none of %s", name.c_str(), names.c_str()));
}

std::string SelectPlan::toString() const {
    return std::string(nameOf(algorithm_)) + ": " +
            (family_ ? family_->toString() : "no rows");
}

SelectPlan planSelection(const SelectProblem& shape) {
    SelectPlan plan;
    plan.algorithm_ = chosen(shape);
    plan.shape_ = withOrder(shape);
    plan.family_ = planOf(*implementationOf(plan.algorithm_), plan.shape_);
    plan.workspaceBytes_ = plan.family_ ? plan.family_->workspaceBytes() : 0;
    return plan;
}

void runSelect(
        const SelectPlan& plan,
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream) {
    checkSelectShape(problem);
    const SelectProblem ordered = withOrder(problem);
    checkSameShape(plan.shape_, ordered);
    if (plan.family_) {
        checkSelectPointers(problem);
        plan.family_->run(ordered, workspace, stream);
    }
}

size_t workspaceBytesOf(
        const SelectImplementation& implementation,
        const SelectProblem& problem) {
    checkSelectShape(problem);
    const auto plan = planOf(implementation, withOrder(problem));
    return plan ? plan->workspaceBytes() : 0;
}

void runImplementation(
        const SelectImplementation& implementation,
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream) {
    checkSelectShape(problem);
    const SelectProblem ordered = withOrder(problem);
    if (const auto plan = planOf(implementation, ordered)) {
        checkSelectPointers(problem);
        plan->run(ordered, workspace, stream);
    }
}

SelectAlgorithm chosenAlgorithm(const SelectProblem& problem) {
    const SelectAlgorithm algorithm = chosen(problem);
    checkTaken(*implementationOf(algorithm), problem);
    return algorithm;
}

size_t selectWorkspaceBytes(const SelectProblem& problem) {
    return planSelection(problem).workspaceBytes();
}

void runSelect(
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream) {
    runSelect(planSelection(problem), problem, workspace, stream);
}

} // namespace faiss_bits
