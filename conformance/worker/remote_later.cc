// Calls of a remote backend whose answers are read with those of others.

#include "conformance/worker/answers.h"
#include "conformance/worker/call.h"
#include "conformance/worker/remote.h"

namespace assay::conformance::worker {

void Remote::questions_later(const assay_call& call, Questions& questions) {
  const auto fill = [&](Writer& to) {
    to.put(static_cast<std::uint8_t>(questions.sized));
    to.put(questions.stated);
    put_call(to, call);
  };
  later(Function::questions, OnFailure::go_on, fill, [this, &questions](assay_status, const std::string&, Reader& from) {
    for (auto [function, result] : {std::pair{Function::workspace_bytes, &questions.workspace_bytes},
                                    {Function::supports, &questions.supports},
                                    {Function::numerics, &questions.numerics}}) {
      result->made = from.get<std::uint8_t>() != 0;
      result->status = from.get<assay_status>();
      result->error = printable(from.text());
      if (result->made) note_lost(function, result->status, result->error);
    }
    questions.bytes = from.get<std::int64_t>();
    const auto stated = from.get<assay_numerics>();
    if (!questions.numerics.made || questions.numerics.status != ASSAY_OK) return;
    questions.stated = stated;
    if (const std::string wrong = check_answer(questions.stated); !wrong.empty()) fault(wrong);
  });
}

void Remote::create_stream_later(std::shared_ptr<assay_stream*> made) {
  later(
      Function::stream_create, OnFailure::report, [](Writer&) {},
      [made = std::move(made)](assay_status status, const std::string&, Reader& from) {
        const auto address = from.get<std::uint64_t>();
        if (status == ASSAY_OK) *made = reinterpret_cast<assay_stream*>(static_cast<std::uintptr_t>(address));
      });
}

}  // namespace assay::conformance::worker
