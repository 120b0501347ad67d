#include "expect.h"
#include <any>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <typeinfo>
struct Node : std::enable_shared_from_this<Node> { virtual ~Node() = default; int value = 1; };
struct Leaf : Node { int extra = 2; };
RUN
{
    std::shared_ptr<Node> node = std::make_shared<Leaf>();
    std::weak_ptr<Node> weak = node;
    EXPECT(std::dynamic_pointer_cast<Leaf>(node)->extra == 2 && weak.lock()->shared_from_this() == node);
#if _GLIBCXX_USE_CXX11_ABI
    // Its locks came with the new string ABI, and must be one set for the process.
    std::atomic_store(&node, std::make_shared<Node>());
    EXPECT(std::atomic_load(&node)->value == 1 && weak.expired());
#endif
    std::any any = std::string("any");
    EXPECT(std::any_cast<std::string>(any) == "any" && any.type() == typeid(std::string));
    std::function<int(int)> function = [](int n) { return n + 1; };
    EXPECT(function(1) == 2);
    std::shared_ptr<int[]> array(new int[3]{1, 2, 3});
    EXPECT(array[2] == 3);
#if __cplusplus >= 202002L && __cpp_lib_atomic_shared_ptr
    std::atomic<std::shared_ptr<Node>> shared(std::make_shared<Node>());
    std::thread writer([&] { shared.store(std::make_shared<Leaf>()); shared.notify_all(); });
    writer.join();
    EXPECT(shared.load()->value == 1);
#endif
#if __cplusplus >= 202002L
    std::atomic<int> flag{0};
    std::thread waker([&] { flag = 1; flag.notify_one(); });
    flag.wait(0);
    waker.join();
    EXPECT(flag == 1);
#endif
    return 0;
}
