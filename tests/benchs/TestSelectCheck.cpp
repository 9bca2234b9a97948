/// What checks the answers in bench_select_sweep: right ones pass, and each
/// way of being wrong shows.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "benchs/SelectCheck.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"

namespace faiss_bits::bench {
namespace {

using test::DeviceBuffer;
using test::GpuTest;

constexpr int64_t kRows = 3;
constexpr int64_t kCols = 2500; // several chunks of a row
constexpr int64_t kStride = 2503;
constexpr int kK = 1100;

/// Keys with ties, both zeros, infinities and NaN, and the right answer.
struct Case {
    bool largest = false;
    DataType type = DataType::Float32;
    IdType idType = IdType::Int64;
    bool lowerColumnFirst = true;
    std::vector<float> keys = std::vector<float>(kRows * kStride, NAN);
    std::vector<float> outKeys = std::vector<float>(kRows * kK);
    std::vector<int64_t> outIds = std::vector<int64_t>(kRows * kK);

    void fill() {
        const float special[] = {0.f, -0.f, INFINITY, -INFINITY, NAN};
        for (int64_t row = 0; row < kRows; ++row) {
            for (int64_t c = 0; c < kCols; ++c) {
                const int64_t i = (c * 7919 + row * 31) % 400;
                // More NaN in row 2 than leave k numbers.
                float key = i < 5 ? special[i] : float(i / 2) - 100;
                key = row == 2 && c % 3 > 0 ? NAN : key;
                keys[row * kStride + c] = key;
            }
            answer(row);
        }
    }

    void answer(int64_t row) {
        const float* from = keys.data() + row * kStride;
        std::vector<int64_t> columns(kCols);
        std::iota(columns.begin(), columns.end(), 0);
        std::stable_sort(
                columns.begin(), columns.end(), [&](int64_t a, int64_t b) {
                    if (std::isnan(from[a]) || std::isnan(from[b])) {
                        return !std::isnan(from[a]) && std::isnan(from[b]);
                    }
                    return largest ? from[a] > from[b] : from[a] < from[b];
                });
        for (int i = 0; i < kK; ++i) {
            outIds[row * kK + i] = columns[i];
            outKeys[row * kK + i] = from[columns[i]];
        }
    }

    /// Exchanges two places of row 0.
    void swapPlaces(int i, int j) {
        std::swap(outKeys[i], outKeys[j]);
        std::swap(outIds[i], outIds[j]);
    }

    /// A place of row 0 that has the key of the place before it, as a number.
    int tie() const {
        int i = 1;
        while (outKeys[i] != outKeys[i - 1] || outKeys[i] == 0) {
            ++i;
        }
        return i;
    }

    int64_t wrongRows() const {
        const DeviceBuffer<uint8_t> keysThere(test::packAs(type, keys));
        const DeviceBuffer<uint8_t> outKeysThere(test::packAs(type, outKeys));
        const DeviceBuffer<uint8_t> outIdsThere(test::packIds(idType, outIds));
        SelectCheck check(kRows, kRows * kCols);
        return check.wrongRows(
                {keysThere.data(),
                 kRows,
                 kCols,
                 kStride,
                 kK,
                 type,
                 largest,
                 outKeysThere.data(),
                 outIdsThere.data(),
                 idType,
                 lowerColumnFirst});
    }
};

class SelectCheckTest : public GpuTest {};

TEST_F(SelectCheckTest, RightAnswersPass) {
    for (const DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (const bool largest : {false, true}) {
            for (const IdType ids : {IdType::Int32, IdType::Int64}) {
                for (const bool lower : {false, true}) {
                    Case c;
                    c.type = type;
                    c.largest = largest;
                    c.idType = ids;
                    c.lowerColumnFirst = lower;
                    c.fill();
                    EXPECT_EQ(c.wrongRows(), 0)
                            << int(type) << largest << int(ids) << lower;
                }
            }
        }
    }
}

TEST_F(SelectCheckTest, ZerosOfEitherSignAreOne) {
    Case c;
    c.fill();
    for (float& key : c.outKeys) {
        key = key == 0 ? -key : key;
    }
    EXPECT_EQ(c.wrongRows(), 0);
}

TEST_F(SelectCheckTest, OrderOfTies) {
    Case c;
    c.fill();
    const int i = c.tie();
    c.swapPlaces(i - 1, i);
    EXPECT_EQ(c.wrongRows(), 1);
    c.lowerColumnFirst = false;
    EXPECT_EQ(c.wrongRows(), 0);
}

/// Each is wrong whatever is asked of ties.
template <class Change>
void expectWrong(const char* what, Change change, int64_t rows = 1) {
    for (const bool lower : {false, true}) {
        Case c;
        c.lowerColumnFirst = lower;
        c.fill();
        change(c);
        EXPECT_EQ(c.wrongRows(), rows) << what << ", " << lower;
    }
}

TEST_F(SelectCheckTest, WrongAnswersShow) {
    expectWrong("another key", [](Case& c) { c.outKeys[500] += 1; });
    expectWrong("a NaN for a number", [](Case& c) { c.outKeys[500] = NAN; });
    expectWrong("no column", [](Case& c) { c.outIds[700] = kCols; });
    expectWrong("no column", [](Case& c) { c.outIds[kK - 1] = -1; });
    expectWrong("a column of another key", [](Case& c) {
        c.outIds[0] = c.outIds[kK - 1];
    });
    expectWrong("a column twice", [](Case& c) {
        const int i = c.tie();
        c.outIds[i - 1] = c.outIds[i];
    });
    expectWrong("not in order", [](Case& c) { c.swapPlaces(3, 900); });
    expectWrong("the last twice, the first missing", [](Case& c) {
        std::rotate(
                c.outKeys.begin(),
                c.outKeys.begin() + 1,
                c.outKeys.begin() + kK);
        std::rotate(
                c.outIds.begin(), c.outIds.begin() + 1, c.outIds.begin() + kK);
        c.outKeys[kK - 1] = c.outKeys[kK - 2];
        c.outIds[kK - 1] = c.outIds[kK - 2];
    });
    expectWrong("the best is missing", [](Case& c) {
        // Nothing but the count of columns can tell.
        Case more = c;
        for (int i = 0; i + 1 < kK; ++i) {
            c.outKeys[i] = more.outKeys[i + 1];
            c.outIds[i] = more.outIds[i + 1];
        }
        for (int64_t column = kCols - 1; column >= 0; --column) {
            const float key = c.keys[column];
            if (key > c.outKeys[kK - 2]) {
                c.outKeys[kK - 1] = key;
                c.outIds[kK - 1] = column;
                break;
            }
        }
    });
    expectWrong(
            "every row",
            [](Case& c) {
                for (int64_t row = 0; row < kRows; ++row) {
                    c.outIds[row * kK + 10] = -1;
                }
            },
            kRows);
    expectWrong(
            "nothing written",
            [](Case& c) {
                std::fill(c.outIds.begin(), c.outIds.end(), -1);
                std::fill(c.outKeys.begin(), c.outKeys.end(), NAN);
            },
            kRows);
}

} // namespace
} // namespace faiss_bits::bench
