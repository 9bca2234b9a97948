#include <array>

#include "kernels/common/Error.h"
#include "kernels/select/SelectChecks.h"
#include "kernels/select/SelectImplementation.h"
#include "kernels/select/SelectShapeKey.h"
#include "kernels/select/SelectTable.h"
#include "kernels/select/large_k/RowSortLaunch.h"
#include "kernels/select/threshold/CombPlan.h"
#include "kernels/select/threshold/HeldPlan.h"

namespace faiss_bits {

namespace {

struct Algorithm {
    SelectAlgorithm algorithm;
    const SelectImplementation& implementation;
};

const Algorithm kAlgorithms[] = {
        {SelectAlgorithm::ShortRows, kShortRowsSelect},
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

/// k = 1 is a minimum, which no sample makes faster. The table is of kernels
/// before.
bool isMinimum(const SelectProblem& p) {
    return p.k == 1 && !p.hasColBias();
}

/// Whether short_rows finds it: a block or less reads a short row, several a
/// long one (measured, H200). Rows that have more than one round of blocks of
/// `bits`, and not more than one of its smaller ones, have these.
bool isShortMinimum(const SelectProblem& p) {
    constexpr idx_t kMostCols = 16384;
    constexpr idx_t kMostColsAtOnce = 65536;
    constexpr idx_t kMoreRows = 5; // of a multiprocessor
    constexpr idx_t kMostRows = 16;
    const idx_t sms = p.device.multiprocessors;
    return p.cols <= kMostCols ||
            (p.cols <= kMostColsAtOnce && p.rows > kMoreRows * sms &&
             p.rows <= kMostRows * sms);
}

/// Half of a row of floats and more, of more columns than are one bucket of
/// survivors: hardly any are left out, and the block that sorts all of them
/// reads no sample and writes no list: 0.71 to 1.00 of the time (measured,
/// H200, up to 6,600 columns). Few rows have plans of one launch.
bool isHalfOfRows(const SelectProblem& p) {
    constexpr idx_t kMostBucketCols = 3584;
    constexpr idx_t kMostCols = 8192;
    constexpr idx_t kManyRows = 32; // of a multiprocessor
    return sizeOf(p.keyType) == 4 && !p.hasColBias() && p.sorted &&
            p.k > kMaxSelectK && 2 * idx_t(p.k) >= p.cols &&
            p.cols > kMostBucketCols && p.cols <= kMostCols &&
            p.rows > kManyRows * p.device.multiprocessors &&
            rowSortPolicy(p).threads > 0;
}

/// The first row of the table that fits and whose algorithm takes the problem.
SelectAlgorithm tabled(const SelectProblem& p) {
    if (isMinimum(p) && p.cols > 0) {
        return isShortMinimum(p) ? SelectAlgorithm::ShortRows
                                 : SelectAlgorithm::Bits;
    }
    const auto takes = [&](SelectAlgorithm algorithm) {
        return implementationOf(algorithm)->refusal(p).empty();
    };
    if (const SelectTableRow* row = rowFor(kSelectTable, p, takes)) {
        // The table's row may be one of many rows, too: few of them take less
        // time if a block holds each than if a warp reads it. And it is of
        // kernels before combs (measured, H200).
        const bool isBlocks = row->algorithm == SelectAlgorithm::ShortRows &&
                p.k > 1 && (holdsRows(p) || combsAreFaster(p));
        if (row->algorithm == SelectAlgorithm::SampleThreshold &&
            isHalfOfRows(p) && takes(SelectAlgorithm::Sort)) {
            return SelectAlgorithm::Sort;
        }
        return isBlocks ? SelectAlgorithm::SampleThreshold : row->algorithm;
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

/// The plan of an implementation that takes the shape, which has rows.
std::shared_ptr<const SelectFamilyPlan> familyPlan(
        const SelectImplementation& one,
        const SelectProblem& shape) {
    return one.plan ? one.plan(shape) : std::make_shared<NoPlan>(shape, one);
}

/// The last plans of a host thread: a caller's shapes are few, and a plan takes
/// up to 4 us, as long as a small selection.
class RecentPlans {
   public:
    const SelectPlan* find(const SelectShapeKey& shape) const {
        for (const Entry& entry : entries_) {
            if (entry.isSet && entry.shape == shape) {
                return &entry.plan;
            }
        }
        return nullptr;
    }

    void add(const SelectShapeKey& shape, const SelectPlan& plan) {
        entries_[next_] = {true, shape, plan};
        next_ = (next_ + 1) % entries_.size();
    }

   private:
    struct Entry {
        bool isSet = false;
        SelectShapeKey shape;
        SelectPlan plan;
    };

    std::array<Entry, 4> entries_;
    size_t next_ = 0;
};

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
            : familyPlan(implementation, withOrder(problem))->workspaceBytes();
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
    const SelectProblem ordered = withOrder(problem);
    familyPlan(implementation, ordered)->run(ordered, workspace, stream);
}

std::string SelectPlan::toString() const {
    return std::string(nameOf(algorithm_)) + ": " +
            (family_ ? family_->toString() : "no rows");
}

SelectPlan planSelection(const SelectProblem& shape) {
    thread_local RecentPlans recent;
    const SelectShapeKey key = shapeKey(shape);
    if (const SelectPlan* known = recent.find(key)) {
        return *known;
    }
    SelectPlan plan;
    plan.algorithm_ = chosen(shape);
    const SelectImplementation& one = *implementationOf(plan.algorithm_);
    checkTaken(one, shape);
    plan.shape_ = withOrder(shape);
    if (shape.rows > 0) {
        plan.family_ = familyPlan(one, plan.shape_);
        plan.workspaceBytes_ = plan.family_->workspaceBytes();
    }
    recent.add(key, plan);
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
    if (!plan.family_) {
        return;
    }
    checkSelectPointers(problem);
    plan.family_->run(ordered, workspace, stream);
}

size_t selectWorkspaceBytes(const SelectProblem& problem) {
    return planSelection(problem).workspaceBytes();
}

SelectAlgorithm chosenAlgorithm(const SelectProblem& problem) {
    return planSelection(problem).algorithm();
}

void runSelect(
        const SelectProblem& problem,
        Workspace workspace,
        cudaStream_t stream) {
    runSelect(planSelection(problem), problem, workspace, stream);
}

} // namespace faiss_bits
