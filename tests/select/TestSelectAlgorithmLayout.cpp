/// Every method of the program: strides, alignment, ids, biases, unsorted
/// output.

#include "tests/select/AlgorithmHarness.h"

namespace faiss_bits::test {
namespace {

class SelectAlgorithmLayout : public GpuTest {};

TEST_F(SelectAlgorithmLayout, StridesAndAlignment) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (size_t shift : {1, 2, 3}) {
            for (int64_t cols : {33, 5003, 40000}) {
                SelectCase c;
                c.rows = 3;
                c.cols = cols;
                c.keyType = type;
                c.largest = shift == 2;
                c.shift = shift;
                c.padding = 4 - int64_t(shift);
                c.outPadding = int64_t(shift);
                SelectData data(c);
                expectAllSelect(data, {1, 100, 1025});
                expectAllSelect(data, {5001}, anyKMethods());
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Rows that start at multiples of 16 bytes with a stride above cols: vector
/// loads must not run into the gap.
TEST_F(SelectAlgorithmLayout, AlignedRowsWithAGap) {
    for (DataType type : {DataType::Float32, DataType::Float16}) {
        SelectCase c;
        c.rows = 4;
        c.cols = 4092;
        c.padding = 36;
        c.keyType = type;
        expectAllSelect(c, {1, 100, 2048});
        c.largest = true;
        expectAllSelect(c, {4092, 5000}, anyKMethods());
    }
}

TEST_F(SelectAlgorithmLayout, ManyShortRows) {
    // More rows than a grid has blocks in y.
    for (int64_t cols : {1, 40}) {
        SelectCase c;
        c.rows = 66000;
        c.cols = cols;
        c.values = Values::FewDistinct;
        expectAllSelect(c, {1, 33});
    }
}

TEST_F(SelectAlgorithmLayout, IdsOfBothTypesWithAnOffset) {
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{3, 5000}, {1, 70000}}) {
        SelectCase c;
        c.rows = rows;
        c.cols = cols;
        c.values = Values::FewDistinct;
        for (int64_t offset : {(int64_t(1) << 33) + 5, int64_t(-7)}) {
            c.idOffset = offset;
            SelectData data(c);
            expectAllSelect(data, {1, 33, 2048});
            expectAllSelect(data, {3000}, anyKMethods());
        }
        c.idType = IdType::Int32;
        // The last column has the largest id that fits.
        c.idOffset = (int64_t(1) << 31) - c.cols;
        SelectData data(c);
        expectAllSelect(data, {1, 33, 2048});
        expectAllSelect(data, {3000}, anyKMethods());
    }
}

/// Given ids decide nothing.
TEST_F(SelectAlgorithmLayout, GivenIds) {
    for (IdType idType : {IdType::Int32, IdType::Int64}) {
        for (Values values :
             {Values::Random,
              Values::FewDistinct,
              Values::AllEqual,
              Values::SomeNan}) {
            for (int64_t cols : {100, 5003, 60000}) {
                SelectCase c;
                c.rows = 2;
                c.cols = cols;
                c.values = values;
                c.idType = idType;
                c.givenIds = true;
                c.largest = idType == IdType::Int64;
                c.padding = 5;
                c.idPadding = cols == 100 ? 7 : 0;
                c.sorted = cols != 5003;
                SelectData data(c);
                expectAllSelect(data, {1, 33, 257, 2048});
                const int n = int(cols);
                expectAllSelect(
                        data,
                        {2049, std::max(n - 1, 2050), std::max(n, 2051)},
                        anyKMethods());
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(SelectAlgorithmLayout, GivenIdsOfBiasedKeys) {
    for (bool dropNan : {false, true}) {
        SelectCase c;
        c.rows = 3;
        c.cols = 5001;
        c.values = Values::SomeNan;
        c.bias = true;
        c.givenIds = true;
        c.dropNan = dropNan;
        SelectData data(c);
        expectAllSelect(data, {1, 129, 2048});
        expectAllSelect(data, {2049, 5001}, anyKMethods());
    }
}

TEST_F(SelectAlgorithmLayout, Biases) {
    for (Values values :
         {Values::Random,
          Values::FewDistinct,
          Values::Descending,
          Values::BothInfinities,
          Values::SomeNan}) {
        for (bool rowBias : {true, false}) {
            for (bool clampAtZero : {true, false}) {
                for (auto [rows, cols] :
                     {std::pair<int64_t, int64_t>{3, 5001},
                      {1, 70000},
                      {300, 100}}) {
                    SelectCase c;
                    c.rows = rows;
                    c.cols = cols;
                    c.values = values;
                    c.bias = true;
                    c.rowBias = rowBias;
                    c.clampAtZero = clampAtZero;
                    SelectData data(c);
                    expectAllSelect(data, {1, 10, 129, 2048});
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Keys and bias of a search for the largest, negated; ids for all rows.
TEST_F(SelectAlgorithmLayout, NegatedKeysAndSharedIds) {
    for (Values values :
         {Values::Random,
          Values::FewDistinct,
          Values::BothInfinities,
          Values::SomeNan,
          Values::SignedZeros}) {
        for (bool dropNan : {false, true}) {
            for (auto [rows, cols] :
                 {std::pair<int64_t, int64_t>{3, 5001},
                  {1, 70000},
                  {300, 100}}) {
                SelectCase c;
                c.rows = rows;
                c.cols = cols;
                c.values = values;
                c.bias = true;
                c.rowBias = false;
                c.clampAtZero = false;
                c.negated = true;
                c.largest = true;
                c.dropNan = dropNan;
                c.givenIds = true;
                c.sharedIds = true;
                SelectData data(c);
                expectAllSelect(data, {1, 10, 129, 2048});
                if (cols > 2049) {
                    expectAllSelect(data, {2049, 5001}, anyKMethods());
                }
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(SelectAlgorithmLayout, UnsortedResultsAreTheSameSets) {
    for (Values values :
         {Values::Random,
          Values::Descending,
          Values::AllEqual,
          Values::FewDistinct,
          Values::SomeNan,
          Values::AllNan,
          Values::SignedZeros}) {
        for (auto [rows, cols] :
             {std::pair<int64_t, int64_t>{3, 5001}, {1, 70000}, {200, 90}}) {
            SelectCase c;
            c.rows = rows;
            c.cols = cols;
            c.values = values;
            c.sorted = false;
            c.keyType = rows == 3 ? DataType::BFloat16 : DataType::Float32;
            c.largest = rows == 1;
            SelectData data(c);
            expectAllSelect(data, {1, 100, 2048});
            // Many rows of mostly sentinels need not be so long.
            const int most = cols < 2048 ? 2050 : 5000;
            expectAllSelect(data, {2049, most}, anyKMethods());
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// A NaN leaves its place empty, where the numbers do not fill the result; a
/// result in any order is in order then.
TEST_F(SelectAlgorithmLayout, NanIsNoCandidate) {
    for (Values values :
         {Values::Random,
          Values::SomeNan,
          Values::AllNan,
          Values::BothInfinities,
          Values::SignedZeros}) {
        for (DataType type :
             {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
            for (auto [rows, cols] :
                 {std::pair<int64_t, int64_t>{3, 5001},
                  {1, 70000},
                  {300, 90}}) {
                SelectCase c;
                c.rows = rows;
                c.cols = cols;
                c.values = values;
                c.keyType = type;
                c.largest = type == DataType::Float16;
                c.sorted = type != DataType::BFloat16;
                c.dropNan = true;
                c.padding = 3;
                SelectData data(c);
                const int n = int(cols);
                expectAllSelect(data, {1, 33, 90, 2048});
                expectAllSelect(
                        data,
                        {2049, std::max(n - 1, 2050), std::max(n, 2051)},
                        anyKMethods());
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(SelectAlgorithmLayout, NanOfBiasedKeysIsNoCandidate) {
    SelectCase c;
    c.values = Values::SomeNan;
    c.bias = true;
    c.dropNan = true;
    c.rows = 3;
    c.cols = 5001;
    SelectData data(c);
    expectAllSelect(data, {1, 129, 2048});
    expectAllSelect(data, {2049, 5001}, anyKMethods());
}

TEST_F(SelectAlgorithmLayout, TraitsNeverChangeTheResult) {
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{1, 100000}, {64, 9000}}) {
        SelectCase c;
        c.rows = rows;
        c.cols = cols;
        c.values = Values::FewDistinct;
        SelectData data(c);
        for (int count : {1, 7, 1000}) {
            data.options().multiprocessors = count;
            expectAllSelect(data, {1, 100, 2048});
        }
        data.options().multiprocessors = 0;
        for (size_t kilobytes : {48, 63, 99}) {
            data.options().sharedBytes = kilobytes * 1024;
            expectAllSelect(data, {1, 100, 2048});
        }
    }
}

} // namespace
} // namespace faiss_bits::test
