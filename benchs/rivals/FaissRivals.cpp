#include "benchs/FaissSelect.h"
#include "benchs/common/Report.h"
#include "benchs/rivals/SelectMethod.h"

namespace faiss_bits::bench {

namespace {

using Select = decltype(&runFaissBlockSelect);

class FaissRival : public SelectMethod {
   public:
    FaissRival(const char* name, Select select)
            : name_(name), select_(select) {}

    std::string name() const override {
        return name_;
    }

    std::pair<std::string, std::string> version() const override {
        return {"faiss", faissVersion()};
    }

    std::string refusal(const SelectShape& shape) const override {
        return shape.type != DataType::Float32 ? "float keys only"
                : shape.k > 2048               ? "k is at most 2048"
                                               : "";
    }

    void prepare(const SelectShape& shape) override {
        shape_ = shape;
    }

    void run(const void* keys, void* outKeys, void* outIds) override {
        select_(static_cast<const float*>(keys),
                shape_.rows,
                shape_.cols,
                shape_.k,
                static_cast<float*>(outKeys),
                static_cast<gpu::ImplSize*>(outIds),
                nullptr);
    }

    IdType idType() const override {
        return sizeof(gpu::ImplSize) == 4 ? IdType::Int32 : IdType::Int64;
    }

   private:
    const char* name_;
    Select select_;
    SelectShape shape_;
};

} // namespace

void addFaissRivals(SelectMethods& rivals) {
    rivals.push_back(
            std::make_unique<FaissRival>("faiss_block", runFaissBlockSelect));
    rivals.push_back(
            std::make_unique<FaissRival>("faiss_warp", runFaissWarpSelect));
}

} // namespace faiss_bits::bench
