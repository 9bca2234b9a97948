/// The end of a row: entries of candidates, their sort, and the results that
/// are written of them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/SortEntries.h"
#include "kernels/cpu/Targets.h"

namespace faiss_bits::test {
namespace {

/// What is sorted: keys of one kind, ids ascending or not.
template <class T>
std::vector<T> keysOf(int kind, idx_t count, std::mt19937& random) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    std::uniform_real_distribution<T> uniform(T(40), T(43));
    std::vector<T> keys(count);
    for (idx_t i = 0; i < count; ++i) {
        const T value = uniform(random);
        switch (kind) {
            case 0:
                keys[i] = value;
                break;
            case 1:
                keys[i] = T(3);
                break;
            case 2: // a few far ones, so that the others share a bucket
                keys[i] = random() % 50 ? value : -value * T(1e20);
                break;
            case 3:
                keys[i] = T(random() % 5);
                break;
            case 4:
                keys[i] = random() % 4 ? value
                        : random() % 2 ? kInfinity
                                       : std::numeric_limits<T>::quiet_NaN();
                break;
            case 5:
                keys[i] = T(count - i);
                break;
            case 6: // both zeros are one key
                keys[i] = random() % 2 ? T(0) : -T(0);
                break;
            default: // denser and denser, of both signs
                keys[i] = T(1) / (value - T(41.5));
        }
    }
    return keys;
}

template <class T>
void expectSorted() {
    std::mt19937 random(5);
    for (idx_t count = 1; count < 20000;
         count += count < 300 ? 1 + count / 40 : count) {
        for (int kind = 0; kind < 8; ++kind) {
            for (const bool ascend : {true, false}) {
                const std::vector<T> keys = keysOf<T>(kind, count, random);
                std::vector<int> ids(count);
                std::iota(ids.begin(), ids.end(), 3);
                if (!ascend) {
                    std::shuffle(ids.begin(), ids.end(), random);
                }
                std::vector<cpu::OrderedEntry<T>> entries, other(count);
                for (idx_t i = 0; i < count; ++i) {
                    entries.push_back({keys[i], ids[i]});
                }
                // By the numbers, not by the bits of an entry.
                std::vector<int> order(count);
                std::iota(order.begin(), order.end(), 0);
                std::sort(order.begin(), order.end(), [&](int a, int b) {
                    const bool nanA = keys[a] != keys[a];
                    const bool nanB = keys[b] != keys[b];
                    if (nanA || nanB || keys[a] == keys[b]) {
                        return nanA != nanB ? nanB : ids[a] < ids[b];
                    }
                    return keys[a] < keys[b];
                });
                const cpu::OrderedEntry<T>* sorted = cpu::sortEntries<T>(
                        entries.data(),
                        other.data(),
                        count,
                        ascend,
                        cpu::orderRange(entries.data(), count));
                for (idx_t i = 0; i < count; ++i) {
                    ASSERT_EQ(ids[order[i]], int(sorted[i].id()))
                            << "kind " << kind << ", " << count
                            << " entries, place " << i;
                }
            }
        }
    }
}

TEST(CpuSort, OrdersByKeyThenId) {
    expectSorted<float>();
    expectSorted<double>();
}

/// More than are sorted by digits.
TEST(CpuSort, HundredsOfThousands) {
    constexpr idx_t kCount = (idx_t(1) << 19) + 1;
    std::mt19937 random(6);
    for (const int kind : {0, 3}) {
        const std::vector<float> keys = keysOf<float>(kind, kCount, random);
        std::vector<cpu::OrderedEntry<float>> entries, other(kCount);
        std::vector<std::pair<float, int>> want;
        for (idx_t i = 0; i < kCount; ++i) {
            entries.push_back({keys[i], int(i)});
            want.push_back({keys[i], int(i)});
        }
        std::sort(want.begin(), want.end());
        const cpu::OrderedEntry<float>* sorted = cpu::sortEntries<float>(
                entries.data(),
                other.data(),
                kCount,
                true,
                cpu::orderRange(entries.data(), kCount));
        for (idx_t i = 0; i < kCount; ++i) {
            ASSERT_EQ(want[i].second, int(sorted[i].id())) << i;
        }
    }
}

template <class T>
void expectMerged() {
    std::mt19937 random(9);
    for (const int count : {0, 1, 2, 50}) {
        for (const int fewCount : {0, 1, 3, 64}) {
            // Some equal keys; the few before all others, between, behind.
            for (const T offset : {T(-100), T(0), T(100)}) {
                std::vector<std::pair<T, int>> want;
                std::vector<cpu::OrderedEntry<T>> sorted, few;
                for (int i = 0; i < count + fewCount; ++i) {
                    const bool isFew = i >= count;
                    const T key = T(random() % 20) + (isFew ? offset : T(0));
                    // Ids of both lists, in any order.
                    const int id = (i * 37) % 997;
                    want.push_back({key, id});
                    (isFew ? few : sorted).push_back({key, id});
                }
                std::sort(sorted.begin(), sorted.end());
                std::sort(want.begin(), want.end());
                sorted.resize(count + fewCount);
                cpu::mergeEntries(sorted.data(), count, few.data(), fewCount);
                for (size_t i = 0; i < want.size(); ++i) {
                    ASSERT_EQ(want[i].first, sorted[i].key())
                            << count << " and " << fewCount << ", place " << i;
                    ASSERT_EQ(want[i].second, int(sorted[i].id())) << i;
                }
            }
        }
    }
}

TEST(CpuSort, FewAreMerged) {
    expectMerged<float>();
    expectMerged<double>();
}

/// Keys that an order by bits may get wrong, among others.
template <class T>
std::vector<T> oddKeys(idx_t count, std::mt19937& random) {
    using Limits = std::numeric_limits<T>;
    const T odd[] = {
            T(0),
            -T(0),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN(),
            -Limits::quiet_NaN(),
            Limits::denorm_min(),
            -Limits::denorm_min(),
            Limits::max(),
            Limits::lowest()};
    std::normal_distribution<T> normal;
    std::vector<T> keys(count);
    for (T& key : keys) {
        key = random() % 2 ? odd[random() % std::size(odd)] : normal(random);
    }
    return keys;
}

/// Counts that are whole vectors of a target, or not.
const idx_t kCounts[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100};

template <class T>
void expectEntries(const std::string& target) {
    const auto kernels = cpu::commonKernelsFor<T>(cpu::targetOf(target));
    std::mt19937 random(7);
    for (const idx_t count : kCounts) {
        const std::vector<T> keys = oddKeys<T>(count, random);
        std::vector<cpu::CandidateId<T>> given(count);
        for (auto& id : given) {
            id = cpu::CandidateId<T>(
                    (sizeof(T) == 8 ? idx_t(random()) << 29 : 0) |
                    random() >> 3);
        }
        for (const bool hasIds : {true, false}) {
            SCOPED_TRACE(
                    target + ", " + std::to_string(count) +
                    (hasIds ? " ids" : " places"));
            const T mark = 12345;
            std::vector<cpu::OrderedEntry<T>> entries(
                    count + 1, cpu::OrderedEntry<T>(mark, 3));
            const cpu::OrderRange<T> range = kernels.makeEntries(
                    keys.data(),
                    hasIds ? given.data() : nullptr,
                    1000,
                    count,
                    entries.data());
            T least = std::numeric_limits<T>::infinity(), most = -least;
            bool anyNan = false, anyNumber = false;
            for (idx_t i = 0; i < count; ++i) {
                ASSERT_EQ(
                        hasIds ? idx_t(given[i]) : 1000 + i,
                        idx_t(entries[i].id()))
                        << i;
                // Zeros of either sign have one order.
                ASSERT_EQ(
                        cpu::OrderedEntry<T>(keys[i], 0).order(),
                        entries[i].order())
                        << i;
                const T key = entries[i].key();
                if (std::isnan(keys[i])) {
                    ASSERT_TRUE(std::isnan(key)) << i;
                    anyNan = true;
                } else {
                    ASSERT_EQ(keys[i], key) << i;
                    least = std::min(least, key);
                    most = std::max(most, key);
                    anyNumber = true;
                }
            }
            // None behind them.
            ASSERT_EQ(mark, entries[count].key());
            if (anyNumber) {
                ASSERT_EQ(least, cpu::keyOfBits(range.least));
            }
            if (anyNan) {
                ASSERT_TRUE(std::isnan(cpu::keyOfBits(range.most)));
            } else if (anyNumber) {
                ASSERT_EQ(most, cpu::keyOfBits(range.most));
            }
        }
    }
}

template <class T>
void expectWritten(const std::string& target) {
    const auto kernels = cpu::commonKernelsFor<T>(cpu::targetOf(target));
    std::mt19937 random(11);
    std::vector<idx_t> map(1000);
    for (size_t i = 0; i < map.size(); ++i) {
        map[i] = (idx_t(1) << 40) - 3 * idx_t(i);
    }
    for (const idx_t count : kCounts) {
        std::vector<T> given;
        std::vector<int> places;
        std::vector<cpu::OrderedEntry<T>> entries;
        for (const T key : oddKeys<T>(2 * count, random)) {
            if (!std::isnan(key) && idx_t(given.size()) < count) {
                given.push_back(key);
                places.push_back(int(random() % map.size()));
                entries.push_back({key, places.back()});
            }
        }
        const idx_t found = idx_t(given.size());
        for (const bool negate : {true, false}) {
            for (const bool hasMap : {true, false}) {
                SCOPED_TRACE(target + ", " + std::to_string(found));
                std::vector<T> keys(found + 1, T(-7));
                std::vector<idx_t> ids(found + 1, -7);
                kernels.writeEntries(
                        entries.data(),
                        found,
                        negate,
                        hasMap ? map.data() : nullptr,
                        keys.data(),
                        ids.data());
                for (idx_t i = 0; i < found; ++i) {
                    ASSERT_EQ(negate ? -given[i] : given[i], keys[i]) << i;
                    // No result is a zero with a sign.
                    ASSERT_FALSE(keys[i] == 0 && std::signbit(keys[i])) << i;
                    ASSERT_EQ(
                            hasMap ? map[places[i]] : idx_t(places[i]), ids[i])
                            << i;
                }
                ASSERT_EQ(T(-7), keys[found]);
                ASSERT_EQ(-7, ids[found]);
            }
        }
    }
}

TEST(CpuSort, EntriesHaveTheirKeysAndIdsOnEveryTarget) {
    for (const std::string& target : cpu::targetNames()) {
        expectEntries<float>(target);
        expectEntries<double>(target);
    }
}

TEST(CpuSort, ResultsAreWrittenAsTheyAreOnEveryTarget) {
    for (const std::string& target : cpu::targetNames()) {
        expectWritten<float>(target);
        expectWritten<double>(target);
    }
}

} // namespace
} // namespace faiss_bits::test
