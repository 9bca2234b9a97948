/// Auto: whatever the table picks takes the problem, and is right.

#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {
namespace {

class SelectAuto : public GpuTest {};

TEST_F(SelectAuto, Shapes) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (auto [rows, cols] :
             {std::pair<int64_t, int64_t>{1, 200000}, {50, 5000}, {500, 100}}) {
            SelectCase c;
            c.rows = rows;
            c.cols = cols;
            c.keyType = type;
            const int n = int(cols);
            expectSelects(c, {1, 20, 2048, 2049, n - 1, n, n + 1});
        }
    }
}

TEST_F(SelectAuto, GivenIds) {
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
                const int n = int(cols);
                expectSelects(c, {1, 257, 2048, n, n + 1});
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(SelectAuto, Biases) {
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
                    expectSelects(
                            c, {1, 129, 2048, 2049, rows == 300 ? 101 : 5001});
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(SelectAuto, UnsortedResultsAreTheSameSets) {
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
            expectSelects(c, {1, 100, 2049});
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(SelectAuto, NanIsNoCandidate) {
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
                const int n = int(cols);
                expectSelects(c, {1, 100, 2049, n, n + 1});
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(SelectAuto, NanOfBiasedKeysIsNoCandidate) {
    SelectCase c;
    c.values = Values::SomeNan;
    c.bias = true;
    c.dropNan = true;
    c.rows = 3;
    c.cols = 5001;
    expectSelects(c, {1, 129, 2049, 5001});
}

} // namespace
} // namespace faiss_bits::test
