/// Rows of 16-bit keys in pairs (short_rows/NarrowChunks.cuh): both sides of
/// every edge, rows that begin anywhere in a line, ties of all kinds, and NaN
/// among the best.

#include "kernels/select/short_rows/NarrowChunksPlan.h"
#include "tests/select/Layouts.h"
#include "tests/select/ShortRowsCase.h"

namespace faiss_bits::test {
namespace {

constexpr DataType kTypes[] = {DataType::Float16, DataType::BFloat16};

/// Both sides of where kernels and limits change.
const std::vector<int> kSomeK =
        {17, 33, 34, 100, 176, 177, 192, 193, 256, 300, 416, 417, 448};

class NarrowChunks : public GpuTest {
   protected:
    static SelectCase caseOf(DataType type, int64_t rows, int64_t cols) {
        SelectCase c = shortRowsCase(rows, cols);
        c.keyType = type;
        return c;
    }

    static void expectNarrow(
            const SelectCase& c,
            const std::vector<int>& ks = kSomeK) {
        std::vector<int> taken;
        for (int k : ks) {
            if (narrowChunksSorted(shapeOf(c, k)) > 0) {
                taken.push_back(k);
            }
        }
        ASSERT_FALSE(taken.empty()) << c.describe();
        expectSelects(c, taken);
    }
};

TEST_F(NarrowChunks, EveryValueAndLength) {
    for (DataType type : kTypes) {
        for (Values values : kAllValues) {
            for (int64_t cols : {1025, 1999, 2048, 2049, 3108, 4097, 16384}) {
                SelectCase c = caseOf(type, 17, cols);
                c.values = values;
                c.largest = cols % 2 == 1;
                expectNarrow(c);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(NarrowChunks, EveryAddress) {
    for (DataType type : kTypes) {
        for (int64_t cols : {1025, 1985, 2047, 2048, 4033, 4097}) {
            for (size_t shift : {0, 1, 2, 31, 32, 62, 63}) {
                SelectCase c = caseOf(type, 17, cols);
                c.shift = shift;
                c.padding = int64_t(shift % 3);
                c.largest = shift % 2 == 1;
                for (Values values :
                     {Values::FewDistinct, Values::SomeNan, Values::Random}) {
                    c.values = values;
                    expectNarrow(c, {50, 192, 448});
                }
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(NarrowChunks, EveryNumberOfRows) {
    for (int64_t rows : {17, 18, 19, 20, 127, 1001}) {
        expectNarrow(caseOf(DataType::Float16, rows, 3108), {50, 187, 300});
    }
}

TEST_F(NarrowChunks, Layouts) {
    for (DataType type : kTypes) {
        forEachLayout(caseOf(type, 18, 3000), [&](const SelectCase& c) {
            expectNarrow(c, {60, 192, 448});
        });
    }
}

TEST_F(NarrowChunks, SmallOfEveryKernel) {
    for (DataType type : kTypes) {
        for (Values values :
             {Values::SomeNan, Values::FewDistinct, Values::Random}) {
            SelectCase c = caseOf(type, 17, 4159);
            c.values = values;
            c.shift = 7;
            expectNarrow(c, {50, 192, 448});
        }
    }
}

} // namespace
} // namespace faiss_bits::test
