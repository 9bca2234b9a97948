#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/knn/FlatKnnPlan.h"
#include "tests/knn/KnnHarness.h"

/// Searches with filters against the ranking of all vectors by the search
/// without one, which in turn is held against the oracle: the ids, the order
/// and the bits of the distances must be those of the allowed vectors in it.
namespace faiss_bits::test {

enum class Allowed {
    None,
    First,
    Last,
    FirstWord,
    LastWord,
    Alternating,
    OneInAHundred,
    OneInFive,
    Half,
    AllButOne,
    All
};

constexpr Allowed kEveryAllowed[] = {
        Allowed::None,
        Allowed::First,
        Allowed::Last,
        Allowed::FirstWord,
        Allowed::LastWord,
        Allowed::Alternating,
        Allowed::OneInAHundred,
        Allowed::OneInFive,
        Allowed::Half,
        Allowed::AllButOne,
        Allowed::All};

inline const char* nameOf(Allowed allowed) {
    const char* names[] = {
            "none",
            "the first",
            "the last",
            "the first word",
            "the last word",
            "alternating",
            "one in a hundred",
            "one in five",
            "half",
            "all but one",
            "all"};
    return names[int(allowed)];
}

inline std::vector<bool> makeAllowed(Allowed allowed, int64_t n, int seed = 1) {
    std::mt19937 random(seed);
    std::vector<bool> members(n);
    for (int64_t i = 0; i < n; ++i) {
        switch (allowed) {
            case Allowed::None:
                break;
            case Allowed::First:
                members[i] = i == 0;
                break;
            case Allowed::Last:
                members[i] = i == n - 1;
                break;
            case Allowed::FirstWord:
                members[i] = i < 32;
                break;
            case Allowed::LastWord:
                members[i] = i / 32 == (n - 1) / 32;
                break;
            case Allowed::Alternating:
                members[i] = i % 2 == 1;
                break;
            case Allowed::OneInAHundred:
                members[i] = random() % 100 == 0;
                break;
            case Allowed::OneInFive:
                members[i] = random() % 5 == 0;
                break;
            case Allowed::Half:
                members[i] = random() % 2 == 0;
                break;
            case Allowed::AllButOne:
                members[i] = i != n / 2;
                break;
            case Allowed::All:
                members[i] = true;
                break;
        }
    }
    return members;
}

/// The words of a filter; those bits behind the last vector are `tail`.
inline std::vector<uint32_t> filterBits(
        const std::vector<bool>& members,
        bool tail) {
    std::vector<uint32_t> words((members.size() + 31) / 32);
    for (size_t i = 0; i < words.size() * 32; ++i) {
        const bool bit = i < members.size() ? members[i] : tail;
        words[i / 32] |= uint32_t(bit) << (i % 32);
    }
    return words;
}

inline std::vector<int32_t> idsOf(const std::vector<bool>& members) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < members.size(); ++i) {
        if (members[i]) {
            ids.push_back(i);
        }
    }
    return ids;
}

/// A filter on the device: bits, and if wanted the list, with `holes` times -1
/// behind it.
class DeviceFilter {
   public:
    DeviceFilter(
            const std::vector<bool>& members,
            bool withList,
            int64_t holes = 0)
            : withList_(withList), bits_(filterBits(members, true)) {
        if (withList) {
            std::vector<int32_t> ids = idsOf(members);
            ids.resize(ids.size() + holes, -1);
            ids_ = DeviceBuffer<int32_t>(ids);
        }
    }

    void apply(FlatKnnProblem& p) const {
        p.allowedBits = bits_.data();
        p.allowedIds = withList_ ? ids_.data() : nullptr;
        p.numAllowed = ids_.size();
    }

   private:
    bool withList_;
    DeviceBuffer<uint32_t> bits_;
    DeviceBuffer<int32_t> ids_;
};

/// The search of one case without a filter, every vector ranked, and searches
/// of the same data with filters.
class FilteredKnn {
   public:
    FilteredKnn(const KnnCase& c, cublasHandle_t handle)
            : case_(c), data_(c), handle_(handle) {
        FlatKnnProblem p = data_.problem();
        p.k = int(std::max<int64_t>(c.n, 1));
        all_ = run(p, kRoomyScratch);
    }

    /// The ranking of all against the oracle.
    ::testing::AssertionResult checkRanking() const {
        KnnCase c = case_;
        c.k = int(std::max<int64_t>(c.n, 1));
        return KnnData(c).check(all_, 8);
    }

    FlatKnnProblem problem(const DeviceFilter& filter, int k) const {
        FlatKnnProblem p = data_.problem();
        p.k = k;
        filter.apply(p);
        return p;
    }

    /// The result of a search, on scratch and outputs of any bytes.
    KnnResult run(FlatKnnProblem p, size_t maxScratch, int byte = 0xFF) const {
        DeviceBuffer<float> outDistances(p.numQueries * p.k, 0xA5);
        DeviceBuffer<uint8_t> outIds(
                p.numQueries * p.k * sizeOf(p.idType), 0xA5);
        p.outDistances = outDistances.data();
        p.outIds = outIds.data();
        DeviceBuffer<uint8_t> scratch(
                flatKnnWorkspaceBytes(p, maxScratch), byte);
        runFlatKnn(p, {scratch.data(), scratch.size()}, handle_, nullptr);
        BITS_CUDA_CHECK(cudaStreamSynchronize(nullptr));
        return {outDistances.download(),
                unpackIds(p.idType, outIds.download())};
    }

    /// Queries `first` and on of the batch, of which these are some.
    FlatKnnProblem page(FlatKnnProblem p, int64_t first, int64_t count) const {
        p.batchQueries = case_.q;
        p.numQueries = count;
        p.queries = static_cast<const uint8_t*>(p.queries) +
                first * case_.d * sizeOf(case_.dataType);
        return p;
    }

    /// The first k allowed places of the ranking, query by query.
    ::testing::AssertionResult check(
            const KnnResult& result,
            const std::vector<bool>& members,
            int k,
            int64_t firstQuery = 0) const {
        const float empty = case_.metric == Metric::InnerProduct
                ? -maxOf(DataType::Float32)
                : maxOf(DataType::Float32);
        const int64_t n = std::max<int64_t>(case_.n, 1);
        const int64_t queries = int64_t(result.ids.size()) / k;
        for (int64_t q = 0; q < queries; ++q) {
            int64_t from = (firstQuery + q) * n;
            const int64_t end = from + n;
            for (int i = 0; i < k; ++i, ++from) {
                while (from < end && all_.ids[from] >= 0 &&
                       !members[all_.ids[from]]) {
                    ++from;
                }
                const bool there = from < end && all_.ids[from] >= 0;
                const int64_t id = there ? all_.ids[from] : -1;
                const float distance = there ? all_.distances[from] : empty;
                from = there ? from : end - 1;
                const float got = result.distances[q * k + i];
                const bool same = result.ids[q * k + i] == id &&
                        (sameBits(got, distance) ||
                         (got == 0 && distance == 0));
                if (!same) {
                    return ::testing::AssertionFailure()
                            << "query " << q << " place " << i << " is (" << got
                            << ", " << result.ids[q * k + i] << "), expected ("
                            << distance << ", " << id << ")";
                }
            }
        }
        return ::testing::AssertionSuccess();
    }

    /// By bits, by a list, and by a list with holes behind it.
    void expectFiltered(
            Allowed allowed,
            int k,
            size_t maxScratch = kRoomyScratch) const {
        const std::vector<bool> members = makeAllowed(allowed, case_.n);
        for (const int holes : {-1, 0, 3}) {
            const DeviceFilter filter(members, holes >= 0, std::max(holes, 0));
            const FlatKnnProblem p = problem(filter, k);
            SCOPED_TRACE(
                    case_.describe() + " allowed: " + nameOf(allowed) + " k=" +
                    std::to_string(k) + " holes=" + std::to_string(holes) +
                    ": " + planFlatKnn(p, maxScratch).toString());
            const KnnResult first = run(p, maxScratch);
            ASSERT_TRUE(check(first, members, k));
            if (holes == 0) {
                ASSERT_TRUE(first == run(p, maxScratch, 0x00))
                        << "two runs differ";
            }
        }
    }

    const KnnCase& options() const {
        return case_;
    }

   private:
    KnnCase case_;
    KnnData data_;
    cublasHandle_t handle_;
    KnnResult all_; // [q, n]
};

} // namespace faiss_bits::test
