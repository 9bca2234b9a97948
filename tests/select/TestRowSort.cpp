/// Rows that one block sorts: every kernel of
/// kernels/select/large_k/RowSortPolicies.inc, at both sides of what it takes.

#include "kernels/select/large_k/RowSortLaunch.h"
#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {
namespace {

class RowSort : public GpuTest {
   protected:
    static SelectCase of(int64_t rows, int64_t cols) {
        SelectCase c;
        c.rows = rows;
        c.cols = cols;
        c.algorithm = SelectAlgorithm::Sort;
        return c;
    }

    /// On both sides of where a first pass drops columns, of the row's length,
    /// and of a third of it.
    static std::vector<int> ksOf(int64_t cols) {
        std::vector<int> ks = {1, int(cols) + 7};
        for (int64_t k :
             {cols / 16,
              cols / 3 - 1,
              cols / 3,
              cols / 3 + 1,
              cols - 1,
              cols}) {
            if (k > 1) {
                ks.push_back(int(k));
            }
        }
        return ks;
    }

    /// Small devices get small blocks, large ones large blocks.
    static constexpr int kMultiprocessors[] = {1, 132, 100000};
};

const int64_t kCols[] = {1,     2,     31,    32,    33,    127,  128,
                         129,   511,   1023,  2047,  2048,  2049, 4095,
                         4096,  4097,  8191,  8192,  8193,  9999, 16383,
                         16384, 16385, 20001, 32767, 32768, 32769};

TEST_F(RowSort, EveryValueAndLength) {
    for (Values values : kAllValues) {
        for (int64_t cols : kCols) {
            SelectCase c = of(3, cols);
            c.values = values;
            c.keyType = cols % 3 == 0 ? DataType::Float32
                    : cols % 3 == 1   ? DataType::Float16
                                      : DataType::BFloat16;
            c.largest = cols % 2 == 1;
            c.multiprocessors = kMultiprocessors[cols % 3];
            expectSelects(c, ksOf(cols));
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(RowSort, EveryTypeAndBlock) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (int64_t cols : kCols) {
            for (int multiprocessors : kMultiprocessors) {
                for (bool largest : {false, true}) {
                    SelectCase c = of(5, cols);
                    c.keyType = type;
                    c.largest = largest;
                    c.multiprocessors = multiprocessors;
                    c.values = largest ? Values::SomeNan : Values::FewDistinct;
                    expectSelects(c, ksOf(cols));
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(RowSort, Biases) {
    for (int64_t cols : {100, 2049, 9000, 16384}) {
        for (bool rowBias : {false, true}) {
            for (bool clamp : {false, true}) {
                SelectCase c = of(4, cols);
                c.bias = true;
                c.rowBias = rowBias;
                c.clampAtZero = clamp;
                expectSelects(c, ksOf(cols));
                c.negated = !clamp;
                c.largest = c.negated;
                expectSelects(c, ksOf(cols));
            }
        }
    }
}

TEST_F(RowSort, Layouts) {
    for (int64_t cols : {100, 3001, 12000}) {
        for (DataType type : {DataType::Float32, DataType::Float16}) {
            SelectCase c = of(7, cols);
            c.keyType = type;
            c.padding = 3;
            c.shift = 1;
            c.outPadding = 5;
            c.idType = IdType::Int32;
            expectSelects(c, ksOf(cols));
            c.givenIds = true;
            c.idPadding = 2;
            expectSelects(c, ksOf(cols));
            c.sharedIds = true;
            c.idPadding = 0;
            expectSelects(c, ksOf(cols));
            c = of(7, cols);
            c.keyType = type;
            c.sorted = false;
            c.idOffset = 77;
            expectSelects(c, ksOf(cols));
            c.dropNan = true;
            c.values = Values::SomeNan;
            expectSelects(c, ksOf(cols));
        }
    }
}

TEST_F(RowSort, ManyRows) {
    for (int64_t cols : {500, 3000, 7000}) {
        SelectCase c = of(3000000 / cols, cols);
        c.keyType = cols == 3000 ? DataType::BFloat16 : DataType::Float32;
        expectSelects(c, {int(cols) / 2, int(cols)});
    }
}

/// What a block sorts is what CUB sorts, bit for bit.
TEST_F(RowSort, AsOtherDevicesSort) {
    for (DataType type : {DataType::Float32, DataType::BFloat16}) {
        SelectCase c = of(3, 9000);
        c.keyType = type;
        c.values = Values::SomeNan;
        SelectData data(c);
        const SelectResult own = data.run(9000, nullptr, 0xFF);
        data.options().sharedBytes = 48 * 1024;
        EXPECT_TRUE(own == data.run(9000, nullptr, 0xFF));
    }
}

// For the sanitizer.

TEST_F(RowSort, SmallOfEveryKernel) {
    struct Kernel {
        RowSortPolicy policy;
        bool isNarrow;
    };
    const Kernel kernels[] = {
#define BITS_ROW_SORT(threads, items) {{threads, items}, false},
#define BITS_ROW_SORT_NARROW(threads, items) {{threads, items}, true},
#include "kernels/select/large_k/RowSortPolicies.inc"
#undef BITS_ROW_SORT
#undef BITS_ROW_SORT_NARROW
    };
    for (const auto& [policy, isNarrow] : kernels) {
        for (DataType type : {DataType::Float32, DataType::Float16}) {
            if (isNarrow && type == DataType::Float32) {
                continue;
            }
            // As many rows as keep the device busy with this one.
            SelectCase c = of(1024 / policy.threads, policy.mostCols() - 5);
            c.keyType = type;
            c.multiprocessors = 1;
            const SelectData data(c);
            ASSERT_EQ(rowSortPolicy(data.problem(1)), policy);
            expectSelects(c, {300, int(c.cols)});
        }
    }
    SelectCase c = of(2, 2100);
    c.bias = true;
    expectSelects(c, {300, 2100});
}

} // namespace
} // namespace faiss_bits::test
