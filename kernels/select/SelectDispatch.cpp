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
    for (const SelectTableRow& row : kSelectTable) {
        if (row.fits(p) &&
            implementationOf(row.algorithm)->refusal(p).empty()) {
            return row.algorithm;
        }
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

const SelectImplementation& chosenImplementation(const SelectProblem& p) {
    return *implementationOf(chosen(p));
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

size_t workspaceBytesOf(
        const SelectImplementation& implementation,
        const SelectProblem& problem) {
    checkSelectShape(problem);
    checkTaken(implementation, problem);
    return problem.rows == 0
            ? 0
            : implementation.workspaceBytes(withOrder(problem));
}

void runImplementation(
        const SelectImplementation& implementation,
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream) {
    checkSelectShape(problem);
    checkTaken(implementation, problem);
    if (problem.rows == 0) {
        return;
    }
    checkSelectPointers(problem);
    implementation.run(withOrder(problem), workspace, stream);
}

SelectAlgorithm chosenAlgorithm(const SelectProblem& problem) {
    const SelectAlgorithm algorithm = chosen(problem);
    checkTaken(*implementationOf(algorithm), problem);
    return algorithm;
}

size_t selectWorkspaceBytes(const SelectProblem& problem) {
    return workspaceBytesOf(chosenImplementation(problem), problem);
}

void runSelect(
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream) {
    runImplementation(
            chosenImplementation(problem), problem, workspace, stream);
}

} // namespace faiss_bits
