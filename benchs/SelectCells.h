#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "benchs/common/Keys.h"
#include "benchs/common/Options.h"

namespace faiss_bits::bench {

/// One cell of the result table: every method has a row in it.
struct SelectCell {
    int64_t rows = 0;
    int64_t cols = 0;
    int k = 0;
    DataType type = DataType::Float32;
    Order order = Order::Random;

    bool hasKeysOf(const SelectCell& other) const {
        return rows == other.rows && cols == other.cols && type == other.type &&
                order == other.order;
    }
    std::string describe() const;
};

using Shape = std::pair<int64_t, int64_t>;

/// What the command line asks for; an empty list leaves all published cells.
struct SelectCellOptions {
    std::vector<Shape> shapes;
    std::vector<int64_t> ks;
    std::vector<Order> orders;
    std::vector<DataType> types;

    /// --shapes, --ks, --orders and --dtypes, which fill this.
    std::vector<ExtraOption> commandLine();
};

/// Cells in the order of measuring, those with the same keys together. Shapes
/// and ks given: any cells, published or not (random float keys unless orders
/// and types are given too). Otherwise the published cells that are asked for.
std::vector<SelectCell> selectCells(const SelectCellOptions& options);

} // namespace faiss_bits::bench
