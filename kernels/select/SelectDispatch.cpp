#include "kernels/common/Error.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/select/SelectImplementation.h"
#include "kernels/select/SelectTable.h"

namespace faiss_bits {

namespace {

const SelectImplementation* const kImplementations[] = {
        &kBitsSelect,
        &kSampleThresholdSelect,
        &kBitsGlobalSelect,
        &kSampleSelect,
        &kSampleSelectTwoStage,
        &kRadixSelect,
        &kSortSelect,
        &kPartialBitonicSelect,
        &kMergeQueueSelect,
        &kBufferedSearchSelect,
        &kHierarchicalPartitionSelect,
        &kCombinedQueueSelect};

const SelectImplementation* implementationOf(SelectAlgorithm algorithm) {
    for (const SelectImplementation* one : kImplementations) {
        if (one->algorithm == algorithm) {
            return one;
        }
    }
    return nullptr;
}

/// The first row of the table that fits and whose algorithm takes the problem.
const SelectImplementation& tabled(const SelectProblem& p) {
    const auto takes = [&](SelectAlgorithm algorithm) {
        return implementationOf(algorithm)->refusal(p).empty();
    };
    if (const SelectTableRow* row = rowFor(kSelectTable, p, takes)) {
        return *implementationOf(row->algorithm);
    }
    return p.k <= kMaxSelectK ? kBitsSelect : kRadixSelect;
}

const SelectImplementation& chosen(const SelectProblem& p) {
    const SelectImplementation& one = p.algorithm == SelectAlgorithm::Auto
            ? tabled(p)
            : *implementationOf(p.algorithm);
    const std::string reason = one.refusal(p);
    BITS_THROW_IF_NOT_FMT(
            reason.empty(),
            "algorithm = %s cannot take this problem: %s",
            one.name,
            reason.c_str());
    return one;
}

/// Empty places come last, which a result in any order does not promise.
SelectProblem withOrder(SelectProblem problem) {
    problem.sorted = problem.sorted || problem.dropNan;
    return problem;
}

void checkAlgorithm(SelectAlgorithm algorithm) {
    BITS_THROW_IF_NOT_FMT(
            algorithm == SelectAlgorithm::Auto || implementationOf(algorithm),
            "algorithm = %d is no SelectAlgorithm",
            int(algorithm));
}

} // namespace

const std::vector<SelectAlgorithm>& selectAlgorithms() {
    static const std::vector<SelectAlgorithm> all = [] {
        std::vector<SelectAlgorithm> list;
        for (const SelectImplementation* one : kImplementations) {
            list.push_back(one->algorithm);
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
    for (const SelectImplementation* one : kImplementations) {
        if (name == one->name) {
            return one->algorithm;
        }
        names += std::string(", ") + one->name;
    }
    throw Error(formatMessage(
            "algorithm = '%s' is none of %s", name.c_str(), names.c_str()));
}

SelectAlgorithm chosenAlgorithm(const SelectProblem& problem) {
    checkAlgorithm(problem.algorithm);
    checkSelectShape(problem);
    return chosen(problem).algorithm;
}

size_t selectWorkspaceBytes(const SelectProblem& problem) {
    checkAlgorithm(problem.algorithm);
    checkSelectShape(problem);
    const SelectImplementation& one = chosen(problem);
    return problem.rows == 0 ? 0 : one.workspaceBytes(withOrder(problem));
}

void runSelect(
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream) {
    checkAlgorithm(problem.algorithm);
    checkSelectShape(problem);
    const SelectImplementation& one = chosen(problem);
    if (problem.rows == 0) {
        return;
    }
    checkSelectPointers(problem);
    one.run(withOrder(problem), workspace, stream);
}

} // namespace faiss_bits
