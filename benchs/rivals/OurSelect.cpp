#include "benchs/common/DeviceData.h"
#include "benchs/common/Report.h"
#include "benchs/rivals/SelectMethod.h"
#include "kernels/select/Select.h"

namespace faiss_bits::bench {

namespace {

class OurSelect : public SelectMethod {
   public:
    explicit OurSelect(SelectAlgorithm algorithm) : algorithm_(algorithm) {}

    std::string name() const override {
        return "faiss_bits";
    }

    std::string algorithm() const override {
        return nameOf(chosenAlgorithm(problem_));
    }

    bool isForced() const override {
        return algorithm_ != SelectAlgorithm::Auto;
    }

    std::pair<std::string, std::string> version() const override {
        return {"", ""};
    }

    /// Auto takes every shape: a refusal of it is a failure.
    std::string refusal(const SelectShape& shape) const override {
        if (algorithm_ == SelectAlgorithm::Auto) {
            return "";
        }
        try {
            (void)selectWorkspaceBytes(problemOf(shape));
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }

    void prepare(const SelectShape& shape) override {
        problem_ = problemOf(shape);
        scratch_ = DeviceArray<uint8_t>(selectWorkspaceBytes(problem_));
    }

    void run(const void* keys, void* outKeys, void* outIds) override {
        problem_.keys = keys;
        problem_.outKeys = outKeys;
        problem_.outIds = outIds;
        runSelect(problem_, {scratch_.data(), scratch_.size()}, nullptr);
    }

    void release() override {
        scratch_ = DeviceArray<uint8_t>();
    }

   private:
    SelectProblem problemOf(const SelectShape& shape) const {
        SelectProblem p;
        p.rows = shape.rows;
        p.cols = shape.cols;
        p.k = shape.k;
        p.keyType = shape.type;
        p.largest = shape.largest;
        p.rowStride = shape.stride;
        p.algorithm = algorithm_;
        p.device = device_;
        return p;
    }

    SelectAlgorithm algorithm_;
    DeviceTraits device_ = deviceTraits();
    SelectProblem problem_;
    DeviceArray<uint8_t> scratch_;
};

} // namespace

std::unique_ptr<SelectMethod> makeOurSelect(SelectAlgorithm algorithm) {
    return std::make_unique<OurSelect>(algorithm);
}

} // namespace faiss_bits::bench
