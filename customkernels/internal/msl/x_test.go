package msl
import ("testing";"os";"fmt";"os/exec";"strings";"path/filepath";"context";"regexp")
var inc=regexp.MustCompile(`(?m)^#include [<"]mlx/backend/metal/kernels/(.*)[>"].*$`)
func flat(root,name string, seen map[string]bool) string {
  if seen[name] {return ""}; seen[name]=true
  b,err:=os.ReadFile(root+name); if err!=nil {return "// MISSING "+name+"\n"}
  return inc.ReplaceAllStringFunc(strings.ReplaceAll(string(b),"#pragma once",""), func(m string) string { return flat(root, inc.FindStringSubmatch(m)[1],seen)})
}
func TestX(t *testing.T){
 root:="/tmp/w/mlx/mlx/include/mlx/backend/metal/kernels/"
 files,_:=filepath.Glob(root+"*.h")
 more,_:=filepath.Glob(root+"*/*.h"); files=append(files,more...)
 more,_=filepath.Glob(root+"*/*/*.h"); files=append(files,more...)
 only:=os.Getenv("ONLY")
 for _,f:=range files { 
  name:=strings.TrimPrefix(f,root)
  if only!="" && !strings.Contains(name,only) {continue}
  text:=flat(root,name,map[string]bool{})+"\n"+generated("","y[0]=1;")
  text=regexp.MustCompile(`\[\[function_constant\(\w+\)\]\]`).ReplaceAllString(text,"= 1")
  h,err:=Host(text)
  if err!=nil { fmt.Println("HOST",name,err); continue }
  if strings.Count(h.Source[:strings.LastIndex(h.Source,"custom_kernel_test")],"\n")==0 {t.Fatal()}
  if os.Getenv("XCC")!="" {
  c:=exec.Command("g++","-x","c++","-std=c++20","-fsyntax-only","-w","-I../host","-DMLXG_NO_MLX_PRELUDE","-"); c.Stdin=strings.NewReader(h.Source); o,err:=c.CombinedOutput(); 
  lines:=[]string{}
  for _,l:=range strings.Split(string(o),"\n") { if strings.Contains(l,"error") {lines=append(lines,l)} }
  fmt.Println("CC",name,err,len(lines)); for i,l:=range lines { if i<6 {fmt.Println("    ",l)}} 
  if only!="" {os.WriteFile("/tmp/msl_helper/out.cpp",[]byte(h.Source),0o644)}
  }
  if os.Getenv("CK")!="" {
  fs,err:=CheckAddressSpaces(context.Background(),text)
  fmt.Println("CK",name,len(fs),fmt.Sprint(err)[:min(len(fmt.Sprint(err)),180)])
  for i,x:=range fs { if i<5 {fmt.Println("    ",x, x.Notes)}}
  if u,ok:=err.(*UncheckedError); ok { for i,x:=range u.Diagnostics { if i<8 {fmt.Println("   U ",x)}} }
  }
 }
}
