#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/many/MergeLists.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/many/MergeData.h"

/// The merge on the device.
namespace faiss_bits::test {

/// A limit of a row, whose results are in order: before all, of the k-th and
/// those beside it, none.
inline float limitOf(
        const MergeCase& c,
        const std::vector<MergeFound>& all,
        int64_t row) {
    const float infinity = std::numeric_limits<float>::infinity();
    const auto beside = [&](int64_t at, float to) {
        at = std::min<int64_t>(at, int64_t(all.size()) - 1);
        return at < 0 ? 3.f : std::nextafter(all[at].distance, to);
    };
    switch ((row + c.k + int64_t(c.values)) % 6) {
        case 0:
            return c.largest ? -infinity : infinity;
        case 1:
            return std::nanf("");
        case 2:
            return beside(c.k - 1, infinity);
        case 3:
            return beside(c.k - 1, -infinity);
        case 4:
            return all.empty()
                    ? 0
                    : all[std::min<size_t>(c.k, all.size()) - 1].distance;
        default:
            return beside(0, c.largest ? infinity : -infinity);
    }
}

/// By meaning: something may be missing among the k best.
inline bool isIncomplete(
        const MergeCase& c,
        const std::vector<MergeFound>& all,
        const float* limit) {
    const size_t best = std::min<size_t>(all.size(), c.k);
    for (size_t i = 0; i < best; ++i) {
        if (all[i].isLastOfCut) {
            return true;
        }
    }
    if (!limit || !std::isfinite(*limit)) {
        return false;
    }
    if (best < size_t(c.k)) {
        return true;
    }
    const float last = all[c.k - 1].distance;
    return c.largest ? last < *limit : last > *limit;
}

/// Lists on the device, in one piece of memory. What is between two of them,
/// and before and behind all, is no result.
template <class T>
class ListsOnDevice {
   public:
    std::vector<const T*> upload(
            const std::vector<std::vector<T>>& lists,
            T none) {
        constexpr size_t kAlignment = 128;
        values_.clear();
        std::vector<size_t> begins;
        for (const auto& list : lists) {
            begins.push_back(values_.size());
            values_.insert(values_.end(), list.begin(), list.end());
            values_.resize(
                    (values_.size() / kAlignment + 2) * kAlignment, none);
        }
        memory_.reset(values_.size(), 0xFF);
        memory_.upload(values_);
        std::vector<const T*> pointers;
        for (const size_t begin : begins) {
            pointers.push_back(memory_.data() + begin);
        }
        return pointers;
    }

    void expectUnchanged() const {
        const auto now = memory_.download();
        EXPECT_EQ(
                std::memcmp(now.data(), values_.data(), now.size() * sizeof(T)),
                0)
                << "lists were written";
        memory_.expectGuardsIntact();
    }

   private:
    DeviceBuffer<T> memory_;
    std::vector<T> values_;
};

/// The merge of a case, with and without limits. Memory stays from case to
/// case: there are thousands, and allocating takes longer than their runs.
class MergeTest : public GpuTest {
   protected:
    void checkMerge(const MergeCase& c) {
        const MergeData data(c);
        const auto distances = distances_.upload(data.distances, NAN);
        const auto ids = ids_.upload(data.ids, -1);
        MergeProblem problem;
        for (size_t list = 0; list < c.widths.size(); ++list) {
            problem.lists.push_back(
                    {distances[list],
                     ids[list],
                     c.widths[list],
                     data.offsets[list],
                     list % 2 == 1});
        }
        problem.rows = c.rows;
        problem.k = c.k;
        problem.largest = c.largest;
        problem.idsAscend = c.idsAscend;
        std::vector<float> limits;
        for (int64_t row = 0; row < c.rows; ++row) {
            limits.push_back(limitOf(c, data.rows[row], row));
        }
        limits_.reset(limits.size(), 0xFF);
        limits_.upload(limits);
        for (const bool areLimited : {false, true}) {
            SCOPED_TRACE(::testing::Message() << c << " limits " << areLimited);
            problem.limits = areLimited ? limits_.data() : nullptr;
            runAndCheck_(
                    c, data, problem, areLimited ? limits.data() : nullptr);
        }
        distances_.expectUnchanged();
        ids_.expectUnchanged();
    }

    /// Every kind of values and order of one shape.
    void checkKinds(const MergeCase& c) {
        forKindsOf(c, [this](const MergeCase& kind) { checkMerge(kind); });
    }

   private:
    void runAndCheck_(
            const MergeCase& c,
            const MergeData& data,
            MergeProblem& problem,
            const float* limits) {
        outDistances_.reset(c.rows * c.k, 0xFF);
        outIds_.reset(c.rows * c.k, 0xFF);
        incomplete_.reset(c.rows, 0);
        problem.outDistances = outDistances_.data();
        problem.outIds = outIds_.data();
        problem.incomplete = incomplete_.data();
        const TestStream stream;
        runMergeLists(problem, stream);
        const auto gotIncomplete = incomplete_.download();
        expectMerged(c, data, outDistances_.download(), outIds_.download());
        for (int64_t row = 0; row < c.rows; ++row) {
            ASSERT_EQ(
                    bool(gotIncomplete[row]),
                    isIncomplete(
                            c, data.rows[row], limits ? &limits[row] : nullptr))
                    << "row " << row << " limit "
                    << (limits ? limits[row] : NAN);
        }
        outDistances_.expectGuardsIntact();
        outIds_.expectGuardsIntact();
        incomplete_.expectGuardsIntact();
    }

    ListsOnDevice<float> distances_;
    ListsOnDevice<int64_t> ids_;
    DeviceBuffer<float> limits_;
    DeviceBuffer<float> outDistances_;
    DeviceBuffer<int64_t> outIds_;
    DeviceBuffer<uint8_t> incomplete_;
};

} // namespace faiss_bits::test
