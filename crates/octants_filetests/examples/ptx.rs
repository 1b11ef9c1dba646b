use octants_codegen::PtxTarget;
use octants_filetests::gpu;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    for kernel in gpu::kernels_of(std::path::Path::new(&args[1])).unwrap() {
        if args.len() > 2 && !kernel.name.contains(&args[2]) {
            continue;
        }
        for task in gpu::compile(kernel, PtxTarget { capability: 90, version: 78 }).unwrap() {
            println!("; {} {:?}", task.symbol, task.shape);
            std::fs::write(format!("/tmp/shapes_{}.ptx", task.symbol), &task.bytes).unwrap();
            println!("{}", String::from_utf8_lossy(&task.bytes));
        }
    }
}
