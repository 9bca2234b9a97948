#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/Knn.h"
#include "kernels/cpu/Range.h"
#include "kernels/cpu/Targets.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/cpu/CpuCases.h"
#include "tests/cpu/CpuCompare.h"
#include "tests/cpu/CpuReference.h"

/// Runs the searches on the CPU and holds the results against the reference.
namespace faiss_bits::test {

template <class T>
struct CpuResult {
    std::vector<T> distances;
    std::vector<idx_t> ids;

    /// Equal bits, so that NaN equals NaN and -0 is not 0.
    bool operator==(const CpuResult& other) const {
        const size_t size = distances.size();
        return ids == other.ids && size == other.distances.size() &&
                (size == 0 ||
                 std::memcmp(
                         distances.data(),
                         other.distances.data(),
                         size * sizeof(T)) == 0);
    }
};

/// Rows of one side of a search in exactly as much memory as they need, with
/// NaN between them and in rows that no id names.
template <class T>
struct CpuRows {
    std::vector<T> values;
    std::vector<idx_t> ids; ///< empty: rows 0 .. count - 1
    idx_t stride = 0;
    idx_t count = 0;

    const T* row(idx_t i) const {
        return values.data() + (ids.empty() ? i : ids[i]) * stride;
    }

    idx_t name(idx_t i) const {
        return ids.empty() ? i : ids[i];
    }
};

/// The arrays of one case.
template <class T>
class CpuData {
   public:
    explicit CpuData(const CpuCase& c) : case_(c), random_(c.seed) {
        queries_ = makeRows(true, c.q, c.queryGap, c.pickQueries, true);
        vectors_ = makeRows(
                false, c.n, c.vectorGap, c.pickVectors, c.repeatVectors);
    }

    const CpuCase& options() const {
        return case_;
    }

    const CpuRows<T>& queries() const {
        return queries_;
    }

    const CpuRows<T>& vectors() const {
        return vectors_;
    }

    /// All but the outputs.
    cpu::KnnProblem<T> problem(const cpu::Choice& choice, int threads) const {
        cpu::KnnProblem<T> p;
        p.metric = case_.metric;
        p.metricArg = T(case_.metricArg);
        p.numQueries = case_.q;
        p.numVectors = case_.n;
        p.d = case_.d;
        p.queries = queries_.values.data();
        p.queryStride = case_.queryGap ? queries_.stride : 0;
        p.queryIds = queries_.ids.empty() ? nullptr : queries_.ids.data();
        p.vectors = vectors_.values.data();
        p.vectorStride = case_.vectorGap ? vectors_.stride : 0;
        p.vectorIds = vectors_.ids.empty() ? nullptr : vectors_.ids.data();
        p.threads = threads;
        p.choice = choice;
        p.k = case_.k;
        p.mode = case_.mode;
        return p;
    }

    CpuResult<T> run(const cpu::Choice& choice = {}, int threads = 1) const {
        return run(problem(choice, threads));
    }

    /// Searches into outputs that are as long as they have to be, and dirty.
    static CpuResult<T> run(cpu::KnnProblem<T> p) {
        const size_t size = p.numQueries * p.k;
        CpuResult<T> result{
                std::vector<T>(size, T(-12345)), std::vector<idx_t>(size, -77)};
        p.outDistances = result.distances.data();
        p.outIds = result.ids.data();
        cpu::runKnn(p);
        return result;
    }

    cpu::RangeResult<T> runRange(
            T radius,
            const cpu::Choice& choice = {},
            int threads = 1) const {
        return cpu::runRange<T>(problem(choice, threads), radius);
    }

    ::testing::AssertionResult check(const CpuResult<T>& result) const {
        const bool largest = isSimilarity(case_.metric);
        for (idx_t i = 0; i < case_.q; ++i) {
            auto right = isTopKOf(
                    candidates(i),
                    largest,
                    result.distances.data() + i * case_.k,
                    result.ids.data() + i * case_.k,
                    case_.k);
            if (!right) {
                return right << "\n  query " << i << ", " << case_.describe();
            }
        }
        return ::testing::AssertionSuccess();
    }

    /// The only right answer of a certified search: every place, every bit.
    CpuResult<T> canonicalResult() const {
        const bool largest = isSimilarity(case_.metric);
        const T most = std::numeric_limits<T>::max();
        CpuResult<T> result;
        result.distances.assign(case_.q * case_.k, largest ? -most : most);
        result.ids.assign(case_.q * case_.k, -1);
        for (idx_t i = 0; i < case_.q; ++i) {
            const auto best = topK(canonicalKeys(i), case_.k, largest);
            for (size_t place = 0; place < best.size(); ++place) {
                result.distances[i * case_.k + place] = T(best[place].key);
                result.ids[i * case_.k + place] = best[place].id;
            }
        }
        return result;
    }

    /// Canonical distances of the i-th query, NaN left out.
    std::vector<Ranked> canonicalKeys(idx_t i) const {
        std::vector<Ranked> keys;
        for (idx_t v = 0; v < case_.n; ++v) {
            const T distance = canonicalDistance(
                    case_.metric,
                    double(T(case_.metricArg)),
                    queries_.row(i),
                    vectors_.row(v),
                    case_.d);
            if (!std::isnan(distance)) {
                keys.push_back({double(distance), vectors_.name(v)});
            }
        }
        return keys;
    }

    ::testing::AssertionResult checkCanonical(
            const CpuResult<T>& result,
            const CpuResult<T>& expected) const {
        for (size_t i = 0; i < expected.ids.size(); ++i) {
            if (result.ids[i] != expected.ids[i] ||
                std::memcmp(
                        &result.distances[i],
                        &expected.distances[i],
                        sizeof(T)) != 0) {
                return ::testing::AssertionFailure()
                        << "query " << i / case_.k << ", place " << i % case_.k
                        << ": (" << result.distances[i] << ", " << result.ids[i]
                        << ") in place of (" << expected.distances[i] << ", "
                        << expected.ids[i] << "), " << case_.describe();
            }
        }
        return ::testing::AssertionSuccess();
    }

    ::testing::AssertionResult checkRange(
            const cpu::RangeResult<T>& result,
            T radius) const {
        const auto& limits = result.limits;
        const idx_t q = case_.q;
        auto failure = [] { return ::testing::AssertionFailure(); };
        if (idx_t(limits.size()) != q + 1 || limits[0] != 0 ||
            limits[q] != idx_t(result.ids.size()) ||
            limits[q] != idx_t(result.distances.size()) ||
            !std::is_sorted(limits.begin(), limits.end())) {
            return failure() << "limits do not fit, " << case_.describe();
        }
        for (idx_t i = 0; i < q; ++i) {
            auto right = isRangeOf(
                    candidates(i),
                    isSimilarity(case_.metric),
                    radius,
                    result.distances.data() + limits[i],
                    result.ids.data() + limits[i],
                    limits[i + 1] - limits[i]);
            if (!right) {
                return right << "\n  query " << i << ", " << case_.describe();
            }
        }
        return ::testing::AssertionSuccess();
    }

    /// What the i-th query may find, computed once.
    const Candidates<T>& candidates(idx_t i) const {
        if (candidates_.empty()) {
            candidates_.resize(case_.q);
            names_.clear();
            for (idx_t v = 0; v < case_.n; ++v) {
                ++names_[vectors_.name(v)];
            }
        }
        auto& known = candidates_[i];
        if (!known) {
            known = std::make_unique<Candidates<T>>();
            known->count = case_.n;
            for (const auto& [id, times] : names_) {
                known->ids.push_back(id);
                known->times.push_back(times);
                known->keys.push_back(acceptedKeys(
                        case_.metric,
                        T(case_.metricArg),
                        queries_.row(i),
                        vectors_.values.data() + id * vectors_.stride,
                        case_.d,
                        isExact(case_.contents)));
            }
        }
        return *known;
    }

   private:
    CpuRows<T> makeRows(
            bool areQueries,
            int64_t count,
            int gap,
            bool pick,
            bool repeats) {
        CpuRows<T> rows;
        rows.count = count;
        rows.stride = case_.d + gap;
        const int64_t all = pick ? 2 * count + 1 : count;
        if (pick) {
            std::vector<idx_t> order(all);
            for (int64_t i = 0; i < all; ++i) {
                order[i] = i;
            }
            for (int64_t i = all - 1; i > 0; --i) {
                std::swap(order[i], order[random_() % (i + 1)]);
            }
            rows.ids.assign(order.begin(), order.begin() + count);
            for (int64_t i = 1; repeats && i < count; i += 3) {
                rows.ids[i] = rows.ids[random_() % i];
            }
        }
        // The last row ends with its last component.
        const size_t size = all ? (all - 1) * rows.stride + case_.d : 0;
        rows.values.assign(size, std::numeric_limits<T>::quiet_NaN());
        std::vector<bool> named(all, !pick);
        for (idx_t id : rows.ids) {
            named[id] = true;
        }
        for (int64_t i = 0; i < all; ++i) {
            if (named[i]) {
                fillVector(
                        case_.contents,
                        areQueries,
                        i,
                        all,
                        case_.d,
                        random_,
                        rows.values.data() + i * rows.stride);
            }
        }
        return rows;
    }

    CpuCase case_;
    std::mt19937 random_;
    CpuRows<T> queries_;
    CpuRows<T> vectors_;
    mutable std::vector<std::unique_ptr<Candidates<T>>> candidates_;
    mutable std::map<idx_t, int> names_;
};

/// Runs the same body for float and for double.
template <class Body>
void forBothTypes(Body&& body) {
    {
        SCOPED_TRACE("float");
        body(float());
    }
    {
        SCOPED_TRACE("double");
        body(double());
    }
}

/// Choices of one variant on every target that this machine has.
inline std::vector<cpu::Choice> choicesOf(cpu::Variant variant) {
    std::vector<cpu::Choice> choices;
    for (const std::string& target : cpu::targetNames()) {
        cpu::Choice choice;
        choice.variant = variant;
        choice.target = target;
        choices.push_back(choice);
    }
    return choices;
}

} // namespace faiss_bits::test
