import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.execution.LocalExecutionControlProvider;
import jdk.jshell.spi.ExecutionControl;
import jdk.jshell.spi.ExecutionControlProvider;
import jdk.jshell.spi.ExecutionEnv;
import sun.misc.Signal;

/**
 * The worker of Java: JShell in this process, since JShell's own second process would need a connection that no dump
 * survives. Standard input has commands, one a line: `run BASE64`, or `change` with `set NAME VALUE` and `remove NAME`, all
 * in Base64, and `reseed`. Standard output takes events, each a line of JSON. Variables are system properties.
 */
public final class Worker {
  private static final PrintStream EVENTS = System.out;
  private static volatile ExecutionControl control;
  private static volatile boolean interrupted;
  private static int count;

  public static void main(String[] arguments) throws Exception {
    System.setOut(printer("stdout"));
    System.setErr(printer("stderr"));
    System.setIn(new java.io.ByteArrayInputStream(new byte[0]));
    BufferedReader commands =
        new BufferedReader(new InputStreamReader(new java.io.FileInputStream(java.io.FileDescriptor.in)));
    try (JShell shell = JShell.builder().executionEngine(new InProcess(), null).out(System.out).err(System.err).build()) {
      for (String line : List.of("import java.util.*;", "import java.util.stream.*;", "import java.io.*;",
          "import java.math.*;", "import java.nio.file.*;", "import java.util.function.*;"))
        shell.eval(line);
      Signal.handle(new Signal("INT"), signal -> interrupt());
      send("[\"ready\"]");
      for (String line; (line = commands.readLine()) != null;) {
        String[] words = line.split(" ", -1);
        if (words[0].equals("run")) run(shell, text(words[1]));
        else change(words);
      }
    }
    System.exit(0);
  }

  /** Execution in this process, with its control kept for interrupts. */
  private static final class InProcess implements ExecutionControlProvider {
    private final LocalExecutionControlProvider local = new LocalExecutionControlProvider();

    @Override
    public String name() {
      return "in-process";
    }

    @Override
    public ExecutionControl generate(ExecutionEnv env, java.util.Map<String, String> parameters) throws Throwable {
      control = local.generate(env, parameters);
      return control;
    }
  }

  private static void interrupt() {
    interrupted = true;
    try {
      control.stop();
    } catch (Exception | LinkageError error) {
      // The server ends this process when the run goes on.
    }
  }

  private static void run(JShell shell, String code) {
    interrupted = false;
    count += 1;
    send("[\"count\"," + count + "]");
    SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
    String rest = code;
    String last = null;
    while (!rest.isBlank() && !interrupted) {
      SourceCodeAnalysis.CompletionInfo next = analysis.analyzeCompletion(rest);
      String source = next.completeness().isComplete() ? next.source() : rest;
      last = null;
      for (SnippetEvent event : shell.eval(source)) {
        if (event.causeSnippet() != null) continue;
        if (failed(shell, event)) {
          send("[\"end\"]");
          return;
        }
        boolean hasValue = event.snippet().kind() == Snippet.Kind.EXPRESSION
            || event.snippet().subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
        if (hasValue && event.value() != null && !event.value().isEmpty()) last = event.value();
      }
      rest = next.completeness().isComplete() ? next.remaining() : "";
    }
    System.out.flush();
    System.err.flush();
    if (interrupted) send("[\"error\",\"Interrupted\",\"Execution was interrupted\",\"\"]");
    else if (last != null) send("[\"result\",true,{\"text/plain\":" + json(last) + "}]");
    send("[\"end\"]");
  }

  private static boolean failed(JShell shell, SnippetEvent event) {
    JShellException thrown = event.exception();
    if (thrown != null) {
      String name = thrown instanceof EvalException ? ((EvalException) thrown).getExceptionClassName() : "UnresolvedReference";
      StringBuilder trace = new StringBuilder(name + ": " + thrown.getMessage() + "\n");
      for (StackTraceElement element : thrown.getStackTrace()) trace.append("    at ").append(element).append("\n");
      error(name, String.valueOf(thrown.getMessage()), trace.toString());
      return true;
    }
    if (event.status() != Snippet.Status.REJECTED) return false;
    StringBuilder why = new StringBuilder();
    shell.diagnostics(event.snippet()).forEach(found -> why.append(found.getMessage(null)).append("\n"));
    error("CompilationException", why.toString().strip(), why.toString());
    return true;
  }

  private static void error(String name, String value, String trace) {
    System.out.flush();
    System.err.flush();
    send("[\"error\"," + json(name) + "," + json(value) + "," + json(trace) + "]");
  }

  private static void change(String[] words) {
    for (int at = 1; at < words.length; at += 1) {
      if (words[at].equals("set")) System.setProperty(text(words[++at]), text(words[++at]));
      else if (words[at].equals("remove")) System.clearProperty(text(words[++at]));
      else if (words[at].equals("reseed")) reseed();
    }
    send("[\"changed\",null]");
  }

  /** Where the JDK keeps state of generators for all objects or threads. SecureRandom draws from the kernel. */
  private static final String[][] GENERATORS = {
    {"java.lang.Math$RandomNumberGeneratorHolder", "randomNumberGenerator"},
    {"java.util.Collections", "r"},
    {"java.util.Random", "seedUniquifier"},
    {"java.util.SplittableRandom", "defaultGen"},
    {"java.util.concurrent.ThreadLocalRandom", "seeder"},
    {"jdk.random.L32X64MixRandom", "defaultGen"},
    {"jdk.random.L64X128MixRandom", "defaultGen"},
    {"jdk.random.L64X128StarStarRandom", "defaultGen"},
    {"jdk.random.Xoshiro256PlusPlus", "DEFAULT_GEN"},
    {"jdk.random.Xoroshiro128PlusPlus", "DEFAULT_GEN"},
  };

  private static void reseed() {
    SecureRandom kernel = new SecureRandom();
    for (String[] generator : GENERATORS) {
      Object state = stateOf(generator[0], generator[1]);
      if (state instanceof Random) ((Random) state).setSeed(kernel.nextLong());
      else if (state instanceof AtomicLong) ((AtomicLong) state).set(kernel.nextLong());
    }
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      try {
        Field seed = Thread.class.getDeclaredField("threadLocalRandomSeed");
        seed.setAccessible(true);
        seed.setLong(thread, kernel.nextLong());
      } catch (ReflectiveOperationException | RuntimeException error) {
        // Another JDK keeps it elsewhere.
      }
    }
  }

  private static Object stateOf(String name, String field) {
    try {
      Field found = Class.forName(name).getDeclaredField(field);
      found.setAccessible(true);
      return found.get(null);
    } catch (ReflectiveOperationException | RuntimeException error) {
      // Another JDK keeps it elsewhere, or has no such generator.
      return null;
    }
  }

  private static PrintStream printer(String name) {
    OutputStream events = new OutputStream() {
      @Override
      public void write(int sign) {
        write(new byte[] {(byte) sign}, 0, 1);
      }

      @Override
      public void write(byte[] bytes, int from, int length) {
        if (length > 0) send("[\"output\",\"" + name + "\"," + json(new String(bytes, from, length, StandardCharsets.UTF_8)) + "]");
      }
    };
    return new PrintStream(events, true, StandardCharsets.UTF_8);
  }

  private static void send(String line) {
    synchronized (EVENTS) {
      byte[] bytes = (line + "\n").getBytes(StandardCharsets.US_ASCII);
      EVENTS.write(bytes, 0, bytes.length);
      EVENTS.flush();
    }
  }

  private static String json(String text) {
    StringBuilder made = new StringBuilder("\"");
    for (char sign : text.toCharArray()) {
      if (sign == '"' || sign == '\\') made.append('\\').append(sign);
      else if (sign >= ' ' && sign < 127) made.append(sign);
      else made.append(String.format("\\u%04x", (int) sign));
    }
    return made.append('"').toString();
  }

  private static String text(String base64) {
    return new String(Base64.getDecoder().decode(base64), StandardCharsets.UTF_8);
  }
}
