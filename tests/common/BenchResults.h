#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// The rows of results that are committed (benchs/results), for tests that
/// hold a model of times against them.
namespace faiss_bits::test {

/// One row: the line of the JSON file that it is.
class ResultRow {
   public:
    explicit ResultRow(std::string line) : line_(std::move(line)) {}

    bool has(const std::string& name) const {
        return line_.find(key(name)) != std::string::npos;
    }
    /// Without quotes; empty if there is none.
    std::string text(const std::string& name) const {
        const size_t at = line_.find(key(name));
        if (at == std::string::npos) {
            return "";
        }
        const size_t begin = at + key(name).size();
        if (line_[begin] == '"') {
            return line_.substr(
                    begin + 1, line_.find('"', begin + 1) - begin - 1);
        }
        return line_.substr(begin, line_.find_first_of(",}", begin) - begin);
    }
    /// 0 if there is none.
    double number(const std::string& name) const {
        return std::atof(text(name).c_str());
    }
    const std::string& line() const {
        return line_;
    }

   private:
    static std::string key(const std::string& name) {
        return "\"" + name + "\": ";
    }
    std::string line_;
};

/// The rows of a method that have a time.
inline std::vector<ResultRow> rowsOf(
        const char* json,
        const std::string& method) {
    std::vector<ResultRow> rows;
    std::istringstream lines(json);
    for (std::string line; std::getline(lines, line);) {
        ResultRow row(line);
        if (row.text("method") == method && row.number("ms") > 0) {
            rows.push_back(row);
        }
    }
    return rows;
}

/// How far expected times are from measured ones.
class Fit {
   public:
    void add(double expected, double measured, const std::string& what) {
        const double ratio = expected / measured;
        factors_.push_back(
                std::isfinite(ratio) && ratio > 0 ? std::max(ratio, 1 / ratio)
                                                  : HUGE_VAL);
        if (factors_.back() >= worst_) {
            worst_ = factors_.back();
            worstText_ = std::to_string(expected) + " ms expected: " + what;
        }
    }
    size_t size() const {
        return factors_.size();
    }
    double worst() const {
        return worst_;
    }
    /// Part of the cells that are within a factor.
    double shareWithin(double factor) const {
        const auto within = std::count_if(
                factors_.begin(), factors_.end(), [&](double one) {
                    return one <= factor;
                });
        return double(within) / double(std::max<size_t>(1, factors_.size()));
    }
    friend std::ostream& operator<<(std::ostream& out, const Fit& fit) {
        return out << fit.size() << " cells, " << fit.shareWithin(1.25)
                   << " within 1.25, " << fit.shareWithin(1.5)
                   << " within 1.5, " << fit.shareWithin(2)
                   << " within 2, worst " << fit.worst_ << ": "
                   << fit.worstText_;
    }

   private:
    std::vector<double> factors_;
    double worst_ = 0;
    std::string worstText_;
};

/// So many cells, such a part of them within 1.5, and all within a factor.
inline void expectFit(
        const Fit& fit,
        size_t leastCells,
        double leastShare,
        double most) {
    EXPECT_GE(fit.size(), leastCells) << fit;
    EXPECT_GE(fit.shareWithin(1.5), leastShare) << fit;
    EXPECT_LE(fit.worst(), most) << fit;
}

} // namespace faiss_bits::test
